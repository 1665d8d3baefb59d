#pragma once
#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

// rd_kafka_producev is variadic and its arguments are macros; Swift sees neither.
static inline rd_kafka_resp_err_t purchases_kafka_produce(
    rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, int flags, int64_t timestamp,
    const void *key, size_t key_size, const void *value, size_t value_size, rd_kafka_headers_t *headers,
    void *opaque) {
  if (headers)
    return rd_kafka_producev(
        client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_MSGFLAGS(flags),
        RD_KAFKA_V_TIMESTAMP(timestamp), RD_KAFKA_V_KEY((void *)key, key_size),
        RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque),
        RD_KAFKA_V_END);
  return rd_kafka_producev(
      client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_MSGFLAGS(flags),
      RD_KAFKA_V_TIMESTAMP(timestamp), RD_KAFKA_V_KEY((void *)key, key_size),
      RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
}

// Macros that expand to casts of negative numbers.
static inline int purchases_kafka_flag_copy(void) { return RD_KAFKA_MSG_F_COPY; }
static inline int purchases_kafka_flag_block(void) { return RD_KAFKA_MSG_F_BLOCK; }
static inline int32_t purchases_kafka_any_partition(void) { return RD_KAFKA_PARTITION_UA; }
static inline int64_t purchases_kafka_no_offset(void) { return RD_KAFKA_OFFSET_INVALID; }
static inline int purchases_kafka_purge_all(void) { return RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT; }

// Whether anything was ever sent on a TCP socket, also when its connection is over. glibc's struct tcp_info ends before
// Linux's tcpi_data_segs_out (4.6 and later). When the kernel doesn't say, something may have been sent.
static inline int purchases_kafka_has_sent(int socket) {
  enum { data_segs_out = 156 };
  unsigned char info[data_segs_out + sizeof(uint32_t)];
  socklen_t size = sizeof info;
  uint32_t segments;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, &size) != 0 || size < sizeof info) return 1;
  memcpy(&segments, info + data_segs_out, sizeof segments);
  return segments > 0;
}
