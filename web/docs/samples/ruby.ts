import { doubleQuoted, joinLines, queryPairs, valueWriter } from './notation.ts'
import { fillPath, hasJson, listPreparations, type SampleRequest } from './request.ts'

const write = valueWriter({
  null: 'nil',
  true: 'true',
  false: 'false',
  string: doubleQuoted,
  key: doubleQuoted,
  variable: (name) => `ENV.fetch("${name}")`,
  separator: ' => ',
  object: ['{', '}'],
  indent: '  ',
})

export function ruby(request: SampleRequest): string {
  const { method, query, isKeyed, body, mediaType, responseFormat } = request
  const data = hasJson(request) ? `JSON.generate(${write(body)})` : write(body ?? '')
  const className = method.charAt(0) + method.slice(1).toLowerCase()
  const path = fillPath(request, ({ name }) => `#{ENV.fetch("${name}")}`)
  return joinLines([
    ...listPreparations(request).map((sentence) => `# ${sentence}`),
    (hasJson(request) || responseFormat === 'json') && 'require "json"',
    'require "net/http"',
    isKeyed && 'require "securerandom"',
    '',
    `uri = URI("${request.baseUrl}${path}")`,
    query.length > 0 &&
      `uri.query = URI.encode_www_form(${write(Object.fromEntries(queryPairs(query)))})`,
    `request = Net::HTTP::${className}.new(uri)`,
    'request["Authorization"] = "Bearer #{ENV.fetch("MUSTER_API_KEY")}"',
    body !== undefined && `request["Content-Type"] = "${mediaType}"`,
    isKeyed && 'request["Idempotency-Key"] = SecureRandom.uuid',
    body !== undefined && `request.body = ${data}`,
    'response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https") do |http|',
    '  http.request(request)',
    'end',
    'raise "#{response.code}: #{response.body}" unless response.is_a?(Net::HTTPSuccess)',
    {
      json: 'puts JSON.pretty_generate(JSON.parse(response.body))',
      text: 'puts response.body',
      none: 'puts response.code',
    }[responseFormat],
  ])
}
