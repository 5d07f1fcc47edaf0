// SPDX-License-Identifier: Apache-2.0
// report.html as one file that needs no network: a page, a chart library and what is shown as JSON.
#include <stdlib.h>
#include <string.h>

#include "sim/report/html.h"

// Made by the build from sim/report/*.css, *.html, *.js and third_party/uplot.
extern const unsigned char weft_sim_page_css[], weft_sim_shared_js[];
extern const unsigned char weft_sim_sweep_html[], weft_sim_sweep_js[];
extern const unsigned char weft_sim_uplot_js[], weft_sim_uplot_css[];

static void put(FILE *to, const unsigned char *text) { fputs((const char *)text, to); }

// JSON that can stand in a script: neither an end tag nor a comment can come from its texts, the
// only places where it has a "<".
static void put_json(FILE *to, const char *text) {
  for (size_t n; *text; text += n + (text[n] == '<')) {
    n = strcspn(text, "<");
    fwrite(text, 1, n, to);
    if (text[n] == '<')
      fputs("\\u003c", to);
  }
}

weft_status weft_sim_put_page(FILE *to, const weft_sim_page *page) {
  char *text = json_dumps(page->data, JSON_COMPACT | JSON_REAL_PRECISION(15));
  if (!text)
    return WEFT_E_NOMEM;
  fputs("<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<title>weft sim</title>\n<style>",
        to);
  put(to, weft_sim_uplot_css);
  put(to, weft_sim_page_css);
  fputs("</style></head>\n<body>\n", to);
  put(to, page->html);
  fputs("<script>", to);
  put(to, weft_sim_uplot_js);
  fprintf(to, "</script>\n<script id=\"%s-data\">const %s = ", page->name, page->name);
  put_json(to, text);
  fputs(";</script>\n<script>", to);
  put(to, weft_sim_shared_js);
  fputs("</script>\n<script>", to);
  put(to, page->js);
  fputs("</script>\n</body>\n</html>\n", to);
  free(text);
  return WEFT_OK;
}

static weft_status put_sweep(void *user, FILE *to) {
  const weft_sim_page page = {
      .html = weft_sim_sweep_html, .js = weft_sim_sweep_js, .name = "sweep", .data = user};
  return weft_sim_put_page(to, &page);
}

weft_status weft_sim_write_sweep_html(const json_t *sweep, const char *path) {
  return weft_sim_write_file(path, put_sweep, (void *)(uintptr_t)sweep);
}
