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

    // In production, use a unique column in your database.
    static final Set<String> processed = ConcurrentHashMap.newKeySet();

    static boolean isValidSignature(byte[] body, String signature) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        // SecretKeySpec rejects an empty secret, which anyone could sign with.
        mac.init(new SecretKeySpec(SECRET.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.UTF_8);
        byte[] actual = (signature == null ? "" : signature).getBytes(StandardCharsets.UTF_8);
        return MessageDigest.isEqual(expected, actual);
    }

    static int handle(HttpExchange exchange) throws IOException, GeneralSecurityException {
        // Verify the raw bytes: JSON that was parsed and serialized again can differ.
        byte[] body = exchange.getRequestBody().readAllBytes();
        if (!isValidSignature(body, exchange.getRequestHeaders().getFirst("X-Service-Signature"))) return 403;
        String json = new String(body, StandardCharsets.UTF_8);
        if (processed.add(field(json, "id"))) {
            // In production, enqueue the delivery here.
            System.out.println(field(json, "event_type") + " " + field(json.substring(json.indexOf("\"resource\"")), "id"));
        }
        return 204;
    }

    // The JDK has no JSON parser. In production, use Jackson or Gson.
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
                status = handle(exchange);
            } catch (GeneralSecurityException | IllegalArgumentException error) {
                System.err.println(error);
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
