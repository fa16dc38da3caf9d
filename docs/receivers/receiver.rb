# Ruby 3 and the webrick gem:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 ruby receiver.rb
require "json"
require "openssl"
require "set"
require "webrick"

MAX_BODY_BYTES = 1024 * 1024
TOLERANCE_SECONDS = 5 * 60

# Both secrets are valid while you rotate them. Ignore empty ones: anyone can sign with them.
SECRETS = ENV.values_at("MUSTER_WEBHOOK_SECRET", "MUSTER_WEBHOOK_NEXT_SECRET").compact.reject(&:empty?)
abort "Set MUSTER_WEBHOOK_SECRET" if SECRETS.empty?

class Receiver < WEBrick::HTTPServlet::AbstractServlet
  # In production, use a unique column in your database.
  PROCESSED_IDS = Set.new
  LOCK = Mutex.new

  def service(request, response)
    response["Allow"] = "POST"
    raise WEBrick::HTTPStatus::MethodNotAllowed unless request.request_method == "POST"

    # Verify the raw bytes: JSON that was parsed and serialized again can differ.
    body = read_body(request)
    raise WEBrick::HTTPStatus::Forbidden unless authentic?(request, body)

    delivery = JSON.parse(body)
    # In production, enqueue the delivery here.
    puts "#{delivery["event_type"]} #{delivery["resource"]["id"]}" if remember(delivery["id"])
    response.status = 204
  end

  private

  def read_body(request)
    body = String.new
    request.body do |chunk|
      body << chunk
      raise WEBrick::HTTPStatus::RequestEntityTooLarge if body.bytesize > MAX_BODY_BYTES
    end
    body
  end

  def authentic?(request, body)
    recent?(request) && SECRETS.any? { |secret| signed?(secret, request, body) }
  end

  # An older delivery may be a replay.
  def recent?(request)
    (Time.now.to_i - request["webhook-timestamp"].to_i).abs <= TOLERANCE_SECONDS
  end

  # X-Service-Signature signs the body. webhook-signature signs ID, time and body.
  def signed?(secret, request, body)
    key = secret.delete_prefix("whsec_").unpack1("m")
    content = "#{request["webhook-id"]}.#{request["webhook-timestamp"]}.#{body}"
    timed_signature = "v1,#{[OpenSSL::HMAC.digest("SHA256", key, content)].pack("m0")}"
    OpenSSL.secure_compare(OpenSSL::HMAC.hexdigest("SHA256", secret, body), request["X-Service-Signature"].to_s) &&
      OpenSSL.secure_compare(timed_signature, request["webhook-signature"].to_s)
  end

  # Returns nil if the delivery was processed before.
  def remember(id)
    LOCK.synchronize { PROCESSED_IDS.add?(id) }
  end
end

$stdout.sync = true
server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1",
  Port: Integer(ENV.fetch("PORT", 4000)),
  AccessLog: [],
  RequestTimeout: 10, # seconds without data, to end uploads that a sender does not finish
)
server.mount "/", Receiver
trap("TERM") { server.shutdown }
server.start
