#pragma once
#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* OPENSSL_free and BIO_get_mem_data are macros, which Swift doesn't import. */
static inline void purchases_openssl_free(void *memory) { OPENSSL_free(memory); }
static inline long purchases_bio_memory(BIO *bio, char **start) { return BIO_get_mem_data(bio, start); }

/* A constant whose macro is an expression over another header's bits. */
static inline int purchases_key_pair(void) { return EVP_PKEY_KEYPAIR; }

/* The name form of RFC 2253, with UTF-8 left readable. */
static inline unsigned long purchases_readable_names(void) { return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB; }
