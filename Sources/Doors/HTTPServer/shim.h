#pragma once
#include <microhttpd.h>

// MHD_start_daemon and the info calls are variadic, which Swift cannot call; these give each option a typed place.

static inline struct MHD_Daemon *purchases_mhd_start(
    unsigned int flags, int listen_socket, MHD_AccessHandlerCallback access, MHD_RequestCompletedCallback completed,
    MHD_NotifyConnectionCallback connection, void *(*uri)(void *, const char *, struct MHD_Connection *), void *context,
    size_t connection_memory, unsigned int connection_limit, unsigned int idle_seconds, size_t stack_bytes,
    const char *certificate_pem, const char *key_pem) {
  struct MHD_OptionItem tls[3] = {
      {certificate_pem ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, (void *)certificate_pem},
      {key_pem ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0, (void *)key_pem},
      {MHD_OPTION_END, 0, NULL}};
  return MHD_start_daemon(
      flags, 0, NULL, NULL, access, context,
      MHD_OPTION_LISTEN_SOCKET, listen_socket,
      MHD_OPTION_NOTIFY_COMPLETED, completed, context,
      MHD_OPTION_NOTIFY_CONNECTION, connection, context,
      MHD_OPTION_URI_LOG_CALLBACK, uri, context,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
      MHD_OPTION_CONNECTION_LIMIT, connection_limit,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
      MHD_OPTION_THREAD_STACK_SIZE, stack_bytes,
      MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
      MHD_OPTION_ARRAY, tls,
      MHD_OPTION_END);
}

static inline int purchases_mhd_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}
