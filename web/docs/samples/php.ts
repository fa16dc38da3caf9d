import { joinLines, queryPairs, singleQuoted, valueWriter } from './notation.ts'
import { fillPath, hasJson, listPreparations, type SampleRequest } from './request.ts'

const write = valueWriter({
  null: 'null',
  true: 'true',
  false: 'false',
  string: singleQuoted,
  key: singleQuoted,
  variable: (name) => `getenv('${name}')`,
  separator: ' => ',
  object: ['[', ']'],
  emptyObject: 'new stdClass()',
  indent: '    ',
})

export function php(request: SampleRequest): string {
  const { method, query, isKeyed, body, mediaType, responseFormat } = request
  const data = hasJson(request) ? `json_encode(${write(body, '    ')})` : write(body ?? '')
  return joinLines([
    '<?php',
    ...listPreparations(request).map((sentence) => `// ${sentence}`),
    query.length > 0 &&
      `$query = http_build_query(${write(Object.fromEntries(queryPairs(query)))});`,
    `$curl = curl_init(${urlExpression(request)});`,
    'curl_setopt_array($curl, [',
    method !== 'GET' && `    CURLOPT_CUSTOMREQUEST => '${method}',`,
    '    CURLOPT_HTTPHEADER => [',
    "        'Authorization: Bearer ' . getenv('MUSTER_API_KEY'),",
    body !== undefined && `        'Content-Type: ${mediaType}',`,
    isKeyed && "        'Idempotency-Key: ' . bin2hex(random_bytes(16)),",
    '    ],',
    body !== undefined && `    CURLOPT_POSTFIELDS => ${data},`,
    '    CURLOPT_RETURNTRANSFER => true,',
    ']);',
    '$body = curl_exec($curl);',
    'if ($body === false) throw new RuntimeException(curl_error($curl));',
    '$status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);',
    'if ($status >= 400) throw new RuntimeException("$status: $body");',
    {
      json: 'print_r(json_decode($body, true));',
      text: 'echo $body;',
      none: 'echo $status, PHP_EOL;',
    }[responseFormat],
  ])
}

function urlExpression(request: SampleRequest): string {
  const path = fillPath(request, ({ name }) => `' . getenv('${name}') . '`)
  // If the path ends with a variable, removes the empty string after it.
  const url = `'${request.baseUrl}${path}'`.replace(/ \. ''$/, '')
  return request.query.length > 0 ? `${url} . "?$query"` : url
}
