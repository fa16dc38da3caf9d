<?php
// PHP 8:  MUSTER_WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:4000 receiver.php
// In production, run it behind your web server, which ends unfinished uploads, with the secret in the environment.
declare(strict_types=1);

const MAX_BODY_BYTES = 1024 * 1024;
const TOLERANCE_SECONDS = 5 * 60;

/** @return list<string> both secrets while you rotate them */
function secrets(): array
{
    $secrets = array_filter([getenv('MUSTER_WEBHOOK_SECRET'), getenv('MUSTER_WEBHOOK_NEXT_SECRET')]);
    // Anyone can sign with an empty secret.
    return $secrets ?: throw new RuntimeException('Set MUSTER_WEBHOOK_SECRET');
}

/** X-Service-Signature signs the body. webhook-signature signs ID, time and body. */
function is_signed(string $secret, string $body): bool
{
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $content = header_value('webhook-id') . '.' . header_value('webhook-timestamp') . '.' . $body;
    $timed_signature = 'v1,' . base64_encode(hash_hmac('sha256', $content, $key, binary: true));
    return hash_equals(hash_hmac('sha256', $body, $secret), header_value('X-Service-Signature'))
        && hash_equals($timed_signature, header_value('webhook-signature'));
}

/** An older delivery may be a replay. */
function is_recent(): bool
{
    return abs(time() - (int) header_value('webhook-timestamp')) <= TOLERANCE_SECONDS;
}

function is_authentic(string $body): bool
{
    foreach (secrets() as $secret) {
        if (is_signed($secret, $body)) {
            return is_recent();
        }
    }
    return false;
}

function header_value(string $name): string
{
    return $_SERVER['HTTP_' . strtoupper(strtr($name, '-', '_'))] ?? '';
}

/** Returns false if the delivery was processed before. In production, use a unique column in your database. */
function remember(string $delivery_id): bool
{
    // Mode x fails if the file exists.
    return @fopen(sys_get_temp_dir() . '/muster-delivery-' . basename($delivery_id), 'x') !== false;
}

/** Returns the status of the response. */
function receive(): int
{
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        header('Allow: POST');
        return 405;
    }
    // Verify the raw bytes: JSON that was parsed and serialized again can differ.
    $body = file_get_contents('php://input', length: MAX_BODY_BYTES + 1);
    if (strlen($body) > MAX_BODY_BYTES) {
        return 413;
    }
    if (!is_authentic($body)) {
        return 403;
    }
    $delivery = json_decode($body, associative: true, flags: JSON_THROW_ON_ERROR);
    if (remember($delivery['id'])) {
        // In production, enqueue the delivery here.
        file_put_contents('php://stdout', "{$delivery['event_type']} {$delivery['resource']['id']}\n");
    }
    return 204;
}

http_response_code(receive());
