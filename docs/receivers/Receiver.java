// Java 17 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 java Receiver.java
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

import static java.nio.charset.StandardCharsets.UTF_8;

public class Receiver {
    private static final int MAX_BODY_BYTES = 1024 * 1024;
    private static final Duration TOLERANCE = Duration.ofMinutes(5);

    /** Both secrets while you rotate them. */
    private final List<String> secrets;

    /** In production, use a unique column in your database. */
    private final Set<String> processedIds = ConcurrentHashMap.newKeySet();

    Receiver(List<String> secrets) {
        this.secrets = secrets;
    }

    /** Returns the status of the response. */
    int receive(HttpExchange exchange) throws IOException {
        if (!exchange.getRequestMethod().equals("POST")) return 405;
        byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES + 1);
        if (body.length > MAX_BODY_BYTES) return 413;
        Headers headers = exchange.getRequestHeaders();
        if (!isRecent(headers) || secrets.stream().noneMatch(secret -> isSigned(secret, headers, body))) return 403;

        // This header equals the ID in the body and is signed.
        String deliveryId = value(headers, "webhook-id");
        if (processedIds.add(deliveryId)) {
            // In production, enqueue the body here. Its consumer parses it, for example with Jackson.
            System.out.println(deliveryId);
        }
        return 204;
    }

    /** An older delivery may be a replay. */
    private static boolean isRecent(Headers headers) {
        String timestamp = value(headers, "webhook-timestamp");
        if (!timestamp.matches("\\d{1,10}")) return false;
        Instant sentAt = Instant.ofEpochSecond(Long.parseLong(timestamp));
        return Duration.between(sentAt, Instant.now()).abs().compareTo(TOLERANCE) <= 0;
    }

    /** X-Service-Signature signs the body. webhook-signature signs ID, time and body. */
    private static boolean isSigned(String secret, Headers headers, byte[] body) {
        byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
        String prefix = value(headers, "webhook-id") + "." + value(headers, "webhook-timestamp") + ".";
        String signature = HexFormat.of().formatHex(hmac(secret.getBytes(UTF_8), body));
        String timedSignature = "v1," + Base64.getEncoder().encodeToString(hmac(key, prefix.getBytes(UTF_8), body));
        return isEqual(value(headers, "X-Service-Signature"), signature)
            && isEqual(value(headers, "webhook-signature"), timedSignature);
    }

    private static byte[] hmac(byte[] key, byte[]... content) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            for (byte[] part : content) mac.update(part);
            return mac.doFinal();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static boolean isEqual(String actual, String expected) {
        return MessageDigest.isEqual(actual.getBytes(UTF_8), expected.getBytes(UTF_8));
    }

    private static String value(Headers headers, String name) {
        String value = headers.getFirst(name);
        return value == null ? "" : value;
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            int status = receive(exchange);
            exchange.getResponseHeaders().set("Allow", "POST");
            exchange.sendResponseHeaders(status, -1);
        }
    }

    public static void main(String[] args) throws IOException {
        // Ignore empty secrets: anyone can sign with them.
        List<String> secrets = Stream.of("MUSTER_WEBHOOK_SECRET", "MUSTER_WEBHOOK_NEXT_SECRET")
            .map(name -> System.getenv().getOrDefault(name, ""))
            .filter(secret -> !secret.isEmpty())
            .toList();
        if (secrets.isEmpty()) throw new IllegalStateException("Set MUSTER_WEBHOOK_SECRET");

        // Ends uploads that a sender does not finish after 10 seconds.
        System.setProperty("sun.net.httpserver.maxReqTime", "10");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "4000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", new Receiver(secrets)::handle);
        // One thread for each request: a slow one does not delay the others.
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
