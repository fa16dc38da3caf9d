<?php
// PHP 8:  MUSTER_WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:4000 receiver.php
// In production, run it behind your web server, with the secret in the environment.

function is_valid_signature(string $body, string $signature): bool
{
    // Anyone can sign with an empty secret.
    $secret = getenv('MUSTER_WEBHOOK_SECRET') ?: throw new RuntimeException('Set MUSTER_WEBHOOK_SECRET');
    return hash_equals(hash_hmac('sha256', $body, $secret), $signature);
}

// Verify the raw bytes: JSON that was parsed and serialized again can differ.
$body = file_get_contents('php://input');
if (!is_valid_signature($body, $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '')) {
    http_response_code(403);
    return;
}

$delivery = json_decode($body, true);
// In production, use a unique column in your database. Here, mkdir() fails if the directory already exists.
if (@mkdir(sys_get_temp_dir() . '/muster-delivery-' . basename($delivery['id']))) {
    // In production, enqueue the delivery here.
    file_put_contents('php://stdout', $delivery['event_type'] . ' ' . $delivery['resource']['id'] . PHP_EOL);
}
http_response_code(204);
