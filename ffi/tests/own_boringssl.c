/* A program with a BoringSSL of its own: the one in libhvq-boringssl.a. It passes its SSL_CTX to the library, as a browser does. */
#include <hvq.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    static const unsigned char protocols[] = { 2, 'h', '3' };
    hvq_client_options options;
    hvq_client_config *config = NULL;
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    hvq_result result;

    if (context == NULL || SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols) != 0)
        return 1;
    if (hvq_client_options_init(&options, sizeof options) != HVQ_OK)
        return 1;
    options.ssl_ctx = context;
    result = hvq_client_config_new(&options, &config);
    printf("%s, and the context is taken: %s\n", OpenSSL_version(OPENSSL_VERSION), result == HVQ_OK ? "yes" : hvq_error_name(result));
    hvq_client_config_free(config);
    SSL_CTX_free(context);
    return result == HVQ_OK ? 0 : 1;
}
