/* One program with two TLS libraries: hvq, which has BoringSSL inside, beside OpenSSL and libcurl.
 *
 * Either library has functions like SSL_new. The program fails if calls of one reach the other: it asks OpenSSL who it is,
 * completes a TLS handshake of OpenSSL in memory, asks libcurl for its TLS library, and transfers data between two endpoints of
 * hvq (the example scheduler.c) before and after.
 */
#define main transfer
#include "examples/scheduler.c"
#undef main

#include <curl/curl.h>
#include <openssl/ssl.h>

/* Joins the two ends of a connection in memory. */
static int join(SSL *client, SSL *server)
{
    BIO *one, *other;
    if (BIO_new_bio_pair(&one, 0, &other, 0) != 1)
        return 0;
    SSL_set_bio(client, one, one);
    SSL_set_bio(server, other, other);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    return 1;
}

/* A handshake of OpenSSL with the certificate and key of the server. */
static int handshake(const char *certificate, const char *key)
{
    SSL_CTX *client_context = SSL_CTX_new(TLS_client_method()), *server_context = SSL_CTX_new(TLS_server_method());
    SSL *client, *server;
    int round, complete = 0;

    if (client_context == NULL || server_context == NULL || SSL_CTX_load_verify_locations(client_context, certificate, NULL) != 1 ||
        SSL_CTX_use_certificate_chain_file(server_context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(server_context, key, SSL_FILETYPE_PEM) != 1)
        return 0;
    SSL_CTX_set_verify(client_context, SSL_VERIFY_PEER, NULL);
    client = SSL_new(client_context);
    server = SSL_new(server_context);
    if (client == NULL || server == NULL || SSL_set1_host(client, "localhost") != 1 || !join(client, server))
        return 0;
    for (round = 0; round < 10 && !complete; round++) {
        int first = SSL_do_handshake(client), second = SSL_do_handshake(server);
        complete = first == 1 && second == 1;
    }
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(client_context);
    SSL_CTX_free(server_context);
    return complete;
}

int main(int count, char **arguments)
{
    const curl_version_info_data *curl;
    int round;

    if (count != 3)
        return transfer(count, arguments);
    for (round = 0; round < 2; round++) {
        if (transfer(count, arguments) != 0)
            return 1;
        printf("OpenSSL says: %s\n", OpenSSL_version(OPENSSL_VERSION));
        if (!handshake(arguments[1], arguments[2])) {
            fprintf(stderr, "the handshake of OpenSSL failed\n");
            return 1;
        }
        printf("a handshake of OpenSSL is complete\n");
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 1;
    curl = curl_version_info(CURLVERSION_NOW);
    printf("libcurl has %s\n", curl->ssl_version);
    curl_global_cleanup();
    return 0;
}
