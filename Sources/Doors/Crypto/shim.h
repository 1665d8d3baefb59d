#pragma once
#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/ocsp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* OPENSSL_free and BIO_get_mem_data are macros, which Swift doesn't import. */
static inline void purchases_openssl_free(void *memory) { OPENSSL_free(memory); }
static inline long purchases_bio_memory(BIO *bio, char **start) { return BIO_get_mem_data(bio, start); }

/* Stacks are typed by macros, which Swift doesn't import. */
static inline int purchases_string_count(STACK_OF(OPENSSL_STRING) *texts) { return sk_OPENSSL_STRING_num(texts); }
static inline const char *purchases_string_at(STACK_OF(OPENSSL_STRING) *texts, int index) {
  return sk_OPENSSL_STRING_value(texts, index);
}
static inline STACK_OF(X509) *purchases_certificates(X509 *only) {
  STACK_OF(X509) *list = sk_X509_new_null();
  if (list != NULL && only != NULL && sk_X509_push(list, only) == 0) {
    sk_X509_free(list);
    return NULL;
  }
  return list;
}
static inline void purchases_certificates_free(STACK_OF(X509) *list) { sk_X509_free(list); }

/* There is no function that sets when an answer was made, but the one that takes the clock's time. */
static inline int purchases_ocsp_set_time(OCSP_BASICRESP *answer, int64_t seconds) {
  return ASN1_GENERALIZEDTIME_set((ASN1_GENERALIZEDTIME *)OCSP_resp_get0_produced_at(answer), seconds) != NULL;
}

/* A constant whose macro is an expression over another header's bits. */
static inline int purchases_key_pair(void) { return EVP_PKEY_KEYPAIR; }

/* The name form of RFC 2253, with UTF-8 left readable. */
static inline unsigned long purchases_readable_names(void) { return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB; }
