# Ruby 3 and the webrick gem:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 ruby receiver.rb
require "json"
require "openssl"
require "webrick"

SECRET = ENV.fetch("MUSTER_WEBHOOK_SECRET", "")
abort "Set MUSTER_WEBHOOK_SECRET" if SECRET.empty? # anyone can sign with an empty secret

# In production, use a unique column in your database.
PROCESSED = {}
LOCK = Mutex.new
$stdout.sync = true

def valid_signature?(body, signature)
  expected = OpenSSL::HMAC.hexdigest("SHA256", SECRET, body)
  OpenSSL.secure_compare(expected, signature.to_s)
end

def first_time?(id)
  LOCK.synchronize { PROCESSED.key?(id) ? false : PROCESSED[id] = true }
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: Integer(ENV.fetch("PORT", 4000)), AccessLog: [])
server.mount_proc "/" do |request, response|
  # Verify the raw bytes: JSON that was parsed and serialized again can differ.
  body = request.body.to_s
  if valid_signature?(body, request["X-Service-Signature"])
    delivery = JSON.parse(body)
    # In production, enqueue the delivery here.
    puts "#{delivery["event_type"]} #{delivery["resource"]["id"]}" if first_time?(delivery["id"])
    response.status = 204
  else
    response.status = 403
  end
end
trap("TERM") { server.shutdown }
server.start
