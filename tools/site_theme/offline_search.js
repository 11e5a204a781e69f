// Search on pages that are opened as files, where browsers start no workers and read no JSON: the same index, on the page's own thread.
if (location.protocol === "file:") {
  for (const name of ["lunr.js", "search_index.js"]) {
    document.write(`<script src="${base_url}/search/${name}"><\/script>`);
  }
  window.Worker = class {
    postMessage(message) {
      if (message.init) {
        addEventListener("load", () => this.start());
      } else {
        const results = this.index.search(message.query).map((result) => this.pages.get(result.ref));
        this.onmessage({ data: { results } });
      }
    }
    start() {
      const { config, docs } = search_index;
      lunr.tokenizer.separator = new RegExp(config.separator);
      this.pages = new Map(docs.map((page) => [page.location, { ...page, summary: page.text.substring(0, 200) }]));
      this.index = lunr(function () {
        this.field("title");
        this.field("text");
        this.ref("location");
        docs.forEach((page) => this.add(page));
      });
      this.onmessage({ data: { config } });
      this.onmessage({ data: { allowSearch: true } });
    }
  };
}
