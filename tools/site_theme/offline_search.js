// Search on pages that are opened as files, where browsers start no workers and read no JSON: the same index, on the page's own thread.
if (location.protocol === "file:") {
  for (const name of ["lunr.js", "search_index.js"]) {
    document.write(`<script src="${base_url}/search/${name}"><\/script>`);
  }
  window.Worker = class {
    postMessage(message) {
      if (message.init) {
        addEventListener("load", () => {
          this.index = lunr.Index.load(search_index.index);
          this.pages = new Map(search_index.docs.map((page) => [page.location, { ...page, summary: page.text.substring(0, 200) }]));
          this.onmessage({ data: { config: search_index.config } });
          this.onmessage({ data: { allowSearch: true } });
        });
      } else {
        const results = this.index.search(message.query).map((result) => this.pages.get(result.ref));
        this.onmessage({ data: { results } });
      }
    }
  };
}
