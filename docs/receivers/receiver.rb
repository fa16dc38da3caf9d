# Ruby 3 and the webrick gem:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 ruby receiver.rb
require "json"
require "openssl"
require "webrick"

SECRET = ENV.fetch("MUSTER_WEBHOOK_SECRET", "")
abort "Set MUSTER_WEBHOOK_SECRET" if SECRET.empty? # anybody can sign with an empty one

# In production: a unique column in your database.
PROCESSED = {}
LOCK = Mutex.new
$stdout.sync = true

def genuine?(body, signature)
  expected = OpenSSL::HMAC.hexdigest("SHA256", SECRET, body)
  OpenSSL.secure_compare(expected, signature.to_s)
end

def first?(id)
  LOCK.synchronize { PROCESSED.key?(id) ? false : PROCESSED[id] = true }
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: Integer(ENV.fetch("PORT", 4000)), AccessLog: [])
server.mount_proc "/" do |request, response|
  # The bytes as they came: JSON that is parsed and written again may differ.
  body = request.body.to_s
  if genuine?(body, request["X-Service-Signature"])
    delivery = JSON.parse(body)
    # In production: put it into a queue.
    puts "#{delivery["event_type"]} #{delivery["resource"]["id"]}" if first?(delivery["id"])
    response.status = 204
  else
    response.status = 403
  end
end
trap("TERM") { server.shutdown }
server.start
