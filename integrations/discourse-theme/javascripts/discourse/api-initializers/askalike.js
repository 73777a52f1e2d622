import { apiInitializer } from "discourse/lib/api";

const NEW_TOPIC = "#reply-control.composer-action-createTopic #reply-title";
const ANY_TITLE = "#reply-control #reply-title";
const EDITORS = "#reply-control .d-editor-input, #reply-control .ProseMirror";

export default apiInitializer(() => {
  const address = settings.service_url.trim();
  if (!/^https?:\/\//i.test(address)) {
    return; // nothing is loaded before an administrator names the service
  }

  const script = document.createElement("script");
  script.src = `${address.replace(/\/+$/, "")}/widget.js`;
  script.async = true;
  const said = {
    askalike: "",
    title: settings.only_new_topics ? NEW_TOPIC : ANY_TITLE,
    body: EDITORS,
    limit: settings.suggestions,
    minimum: settings.least_probability.trim(),
    key: settings.api_key.trim() || null,
  };
  for (const [name, value] of Object.entries(said)) {
    if (value !== null) {
      script.dataset[name] = value;
    }
  }
  document.head.append(script);
});
