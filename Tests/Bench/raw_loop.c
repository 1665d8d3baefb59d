/* The limit that stages on Kafka are measured beside: librdkafka alone, moving the same records in transactions of the same
 * size, and nothing else. `copy` consumes and produces each record again; `hash` consumes and takes the SHA-256 of each
 * whole record (key, headers, value), and only commits its positions.
 *
 *     raw_loop copy|hash BROKERS GROUP SCRATCH-TOPIC TOPIC...
 *
 * Reads from the beginning to the end as it stands and prints "sample RECORDS SECONDS CPU-SECONDS": from the moment at
 * which the partitions were handed over to the last commit, and the processor time within. */
#include <librdkafka/rdkafka.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 4096, MAXIMUM_PARTITIONS = 1024, WAIT_MS = 100, PATIENCE_MS = 30000 };

static double began, began_cpu;
static int assigned, at_end;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "raw_loop: %s: %s\n", what, why);
  exit(1);
}

static void check(rd_kafka_error_t *error, const char *what) {
  if (error) fail(what, rd_kafka_error_string(error));
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char text[512];
  if (rd_kafka_conf_set(conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK) fail(name, text);
}

static void rebalanced(rd_kafka_t *client, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque) {
  (void)opaque;
  if (code != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    rd_kafka_assign(client, NULL);
    return;
  }
  assigned = list->cnt;
  at_end = 0;
  began = now();
  began_cpu = cpu();
  for (int i = 0; i < list->cnt; i++) list->elems[i].offset = 0;
  rd_kafka_assign(client, list);
}

static rd_kafka_t *open_client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
  char text[512];
  rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof text);
  if (!client) fail("rd_kafka_new", text);
  return client;
}

static rd_kafka_t *open_consumer(const char *brokers, const char *group, char **topics, int count) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", brokers);
  set(conf, "group.id", group);
  set(conf, "enable.auto.commit", "false");
  set(conf, "enable.auto.offset.store", "false");
  set(conf, "isolation.level", "read_committed");
  set(conf, "enable.partition.eof", "true");
  set(conf, "check.crcs", "true");
  /* By default a queue that was full is looked at again after a second: that would be no limit. */
  set(conf, "fetch.queue.backoff.ms", "10");
  set(conf, "fetch.wait.max.ms", "100");
  rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
  rd_kafka_t *consumer = open_client(RD_KAFKA_CONSUMER, conf);
  rd_kafka_poll_set_consumer(consumer);
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
  for (int i = 0; i < count; i++) rd_kafka_topic_partition_list_add(list, topics[i], RD_KAFKA_PARTITION_UA);
  rd_kafka_resp_err_t code = rd_kafka_subscribe(consumer, list);
  if (code) fail("subscribe", rd_kafka_err2str(code));
  rd_kafka_topic_partition_list_destroy(list);
  return consumer;
}

static rd_kafka_t *open_producer(const char *brokers, const char *group) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", brokers);
  set(conf, "transactional.id", group);
  set(conf, "linger.ms", "5");
  set(conf, "message.max.bytes", "12582912");
  rd_kafka_t *producer = open_client(RD_KAFKA_PRODUCER, conf);
  check(rd_kafka_init_transactions(producer, PATIENCE_MS), "init_transactions");
  return producer;
}

/* Takes what there is, up to a batch; fewer only where nothing comes for a while or all has been read. */
static int fetch(rd_kafka_t *consumer, rd_kafka_message_t **batch) {
  int count = 0;
  double deadline = now() + PATIENCE_MS * 1e-3;
  while (count < BATCH && !(assigned && at_end == assigned)) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, WAIT_MS);
    if (!message) {
      if (count) break;
      if (now() > deadline) fail("poll", "nothing comes");
      continue;
    }
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      batch[count++] = message;
      continue;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) at_end++;
    else fprintf(stderr, "raw_loop: %s\n", rd_kafka_message_errstr(message));
    rd_kafka_message_destroy(message);
  }
  return count;
}

static void produce(rd_kafka_t *producer, rd_kafka_topic_t *scratch, rd_kafka_message_t *message) {
  rd_kafka_headers_t *headers = NULL, *copy = NULL;
  if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) copy = rd_kafka_headers_copy(headers);
  rd_kafka_vu_t fields[] = {
    {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = scratch},
    {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {message->key, message->key_len}},
    {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {message->payload, message->len}},
    {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = rd_kafka_message_timestamp(message, NULL)},
    {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK},
    {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = copy},
  };
  check(rd_kafka_produceva(producer, fields, copy ? 6 : 5), "produce");
}

static void hash(EVP_MD_CTX *context, const EVP_MD *sha256, rd_kafka_message_t *message) {
  unsigned char digest[32];
  rd_kafka_headers_t *headers;
  EVP_DigestInit_ex2(context, sha256, NULL);
  EVP_DigestUpdate(context, message->key, message->key_len);
  if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char *name;
    const void *value;
    size_t size;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
      EVP_DigestUpdate(context, name, strlen(name));
      EVP_DigestUpdate(context, value, size);
    }
  }
  EVP_DigestUpdate(context, message->payload, message->len);
  EVP_DigestFinal_ex(context, digest, NULL);
}

static void commit(rd_kafka_t *producer, rd_kafka_t *consumer, rd_kafka_message_t **batch, int count) {
  /* The last record of each partition names its position. */
  rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(MAXIMUM_PARTITIONS);
  for (int i = count - 1; i >= 0; i--) {
    const char *topic = rd_kafka_topic_name(batch[i]->rkt);
    if (!rd_kafka_topic_partition_list_find(offsets, topic, batch[i]->partition))
      rd_kafka_topic_partition_list_add(offsets, topic, batch[i]->partition)->offset = batch[i]->offset + 1;
  }
  if (rd_kafka_flush(producer, PATIENCE_MS)) fail("flush", "not in time");
  rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);
  check(rd_kafka_send_offsets_to_transaction(producer, offsets, group, PATIENCE_MS), "send_offsets");
  check(rd_kafka_commit_transaction(producer, PATIENCE_MS), "commit");
  rd_kafka_consumer_group_metadata_destroy(group);
  rd_kafka_topic_partition_list_destroy(offsets);
}

int main(int count, char **words) {
  if (count < 6) fail("usage", "raw_loop copy|hash BROKERS GROUP SCRATCH-TOPIC TOPIC...");
  int copies = !strcmp(words[1], "copy");
  rd_kafka_t *producer = open_producer(words[2], words[3]);
  rd_kafka_t *consumer = open_consumer(words[2], words[3], words + 5, count - 5);
  rd_kafka_topic_t *scratch = NULL;
  if (copies) {
    rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
    char text[512];
    if (rd_kafka_topic_conf_set(conf, "partitioner", "murmur2", text, sizeof text) != RD_KAFKA_CONF_OK) fail("topic", text);
    scratch = rd_kafka_topic_new(producer, words[4], conf);
  }
  EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  static rd_kafka_message_t *batch[BATCH];
  long records = 0;
  double ended = 0, ended_cpu = 0;
  for (;;) {
    int size = fetch(consumer, batch);
    if (!size && assigned && at_end == assigned) break;
    if (!size) continue;
    check(rd_kafka_begin_transaction(producer), "begin");
    for (int i = 0; i < size; i++) {
      if (copies) produce(producer, scratch, batch[i]);
      else hash(context, sha256, batch[i]);
    }
    commit(producer, consumer, batch, size);
    records += size;
    ended = now();
    ended_cpu = cpu();
    for (int i = 0; i < size; i++) rd_kafka_message_destroy(batch[i]);
  }
  printf("sample %ld %.6f %.6f\n", records, ended - began, ended_cpu - began_cpu);
  fflush(stdout);
  rd_kafka_consumer_close(consumer);
  _exit(0);
}
