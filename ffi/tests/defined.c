/*
 * What memcheck cannot see through: the assembler of packet protection. It takes the output of AES and GHASH instructions for
 * undefined, and with it every packet, so that it could say nothing about the rest. These wrappers have it check that the
 * input is defined and then take the output for defined. Everything else is checked as it is.
 *
 *     gcc -shared -fPIC -o defined.so defined.c; LD_PRELOAD=./defined.so valgrind PROGRAM
 */
#include <stddef.h>
#include <valgrind/memcheck.h>

#define WRAP(name) I_WRAP_SONAME_FNNAME_ZZ(Za, ringZa__##name)

/* Encrypts or decrypts what it can of `length` bytes, and returns how much that is. */
#define GCM(name)                                                                                                      \
    size_t WRAP(name)(const void *in, void *out, size_t length, const void *key, void *counter, const void *table,    \
                      void *hash);                                                                                     \
    size_t WRAP(name)(const void *in, void *out, size_t length, const void *key, void *counter, const void *table,    \
                      void *hash)                                                                                      \
    {                                                                                                                  \
        OrigFn original;                                                                                               \
        size_t done;                                                                                                   \
        VALGRIND_GET_ORIG_FN(original);                                                                                \
        VALGRIND_CHECK_MEM_IS_DEFINED(in, length);                                                                     \
        CALL_FN_W_7W(done, original, in, out, length, key, counter, table, hash);                                      \
        VALGRIND_MAKE_MEM_DEFINED(&done, sizeof done);                                                                 \
        VALGRIND_MAKE_MEM_DEFINED(out, done);                                                                          \
        VALGRIND_MAKE_MEM_DEFINED(counter, 16);                                                                        \
        VALGRIND_MAKE_MEM_DEFINED(hash, 16);                                                                           \
        return done;                                                                                                   \
    }

GCM(aesni_gcm_encrypt)
GCM(aesni_gcm_decrypt)
