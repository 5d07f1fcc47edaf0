// SPDX-License-Identifier: Apache-2.0
// Loads a policy of the user's own from the file that `scheme` names.
#include "cli/policy.h"

#include <dlfcn.h>

#include <sodium.h>

#include "cli/cli.h"

static int told(const char *command, char *why) {
  const int code = cli_error(command, CLI_USAGE, "scheme: %s", why);
  g_free(why);
  return code;
}

// Loads it for good: a sweep asks for it again and again, and its name is reported at the end.
static int load(const char *command, const char *path, const weft_policy **out) {
  void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const weft_policy_file *found = file ? dlsym(file, "weft_policy_in_file") : NULL;
  if (!file)
    return told(command, g_strdup(dlerror()));
  if (!found)
    return told(
        command,
        g_strdup_printf(
            "%s does not define a policy with WEFT_POLICY_FILE = ... (weft/peer_policy.h)", path));
  if (found->layout != WEFT_POLICY_LAYOUT)
    return told(command,
                g_strdup_printf(
                    "%s was compiled for another version of weft and must be recompiled", path));
  const weft_policy *policy = &found->policy;
  if (!policy->name || !g_utf8_validate(policy->name, -1, NULL) || !(policy->pick || policy->ask))
    return told(command,
                g_strdup_printf("the policy in %s lacks a name, or both pick and ask", path));
  *out = policy;
  return -1;
}

int cli_policy_load(const char *command, const char *path, cli_policy *out) {
  g_autofree char *content = NULL;
  g_autoptr(GError) error = NULL;
  uint8_t digest[crypto_generichash_BYTES];
  gsize bytes;
  if (!g_file_get_contents(path, &content, &bytes, &error))
    return cli_error(command, CLI_IO, "%s", error->message);
  (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)content, bytes, NULL, 0);
  (void)sodium_bin2hex(out->hash, sizeof out->hash, digest, sizeof digest);
  return load(command, path, &out->policy);
}

int cli_policy_wrong(const char *command, const weft_policy *policy) {
  return cli_error(command, CLI_USAGE,
                   "the policy %s made a choice outside its view: a neighbour, a segment or a "
                   "count out of range (weft/peer_policy.h)",
                   policy->name);
}
