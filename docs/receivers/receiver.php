<?php
// PHP 8:  MUSTER_WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:4000 receiver.php
// In production, behind your web server, with the secret in its environment.

function is_genuine(string $body, string $signature): bool
{
    // Anybody can sign with an empty secret.
    $secret = getenv('MUSTER_WEBHOOK_SECRET') ?: throw new RuntimeException('Set MUSTER_WEBHOOK_SECRET');
    return hash_equals(hash_hmac('sha256', $body, $secret), $signature);
}

// The bytes as they came: JSON that is parsed and written again may differ.
$body = file_get_contents('php://input');
if (!is_genuine($body, $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '')) {
    http_response_code(403);
    return;
}

$delivery = json_decode($body, true);
// In production: a unique column in your database. Here: making a folder fails when it is there, so that only one is the first.
if (@mkdir(sys_get_temp_dir() . '/muster-delivery-' . basename($delivery['id']))) {
    // In production: put it into a queue.
    file_put_contents('php://stdout', $delivery['event_type'] . ' ' . $delivery['resource']['id'] . PHP_EOL);
}
http_response_code(204);
