// Java 17 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 java Receiver.java
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    static final String SECRET = System.getenv().getOrDefault("MUSTER_WEBHOOK_SECRET", "");

    // In production: a unique column in your database.
    static final Set<String> processed = ConcurrentHashMap.newKeySet();

    static boolean isGenuine(byte[] body, String signature) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        // Throws when the secret is empty: anybody could sign with that.
        mac.init(new SecretKeySpec(SECRET.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.UTF_8);
        byte[] given = (signature == null ? "" : signature).getBytes(StandardCharsets.UTF_8);
        return MessageDigest.isEqual(expected, given);
    }

    static int receive(HttpExchange exchange) throws IOException, GeneralSecurityException {
        // The bytes as they came: JSON that is parsed and written again may differ.
        byte[] body = exchange.getRequestBody().readAllBytes();
        if (!isGenuine(body, exchange.getRequestHeaders().getFirst("X-Service-Signature"))) return 403;
        String json = new String(body, StandardCharsets.UTF_8);
        if (processed.add(field(json, "id"))) {
            // In production: put it into a queue.
            System.out.println(field(json, "event_type") + " " + field(json.substring(json.indexOf("\"resource\"")), "id"));
        }
        return 204;
    }

    // Java comes without JSON. In production: Jackson or Gson.
    static String field(String json, String name) {
        Matcher matcher = Pattern.compile("\"" + name + "\":\\s*\"([^\"]*)\"").matcher(json);
        return matcher.find() ? matcher.group(1) : "";
    }

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "4000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            int status = 500;
            try {
                status = receive(exchange);
            } catch (GeneralSecurityException | IllegalArgumentException error) {
                System.err.println(error);
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
