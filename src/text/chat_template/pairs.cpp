#include "text/chat_template/pairs.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace posenc::text {

ChatPairs::ChatPairs(const sentence::ChatTemplate& chat, const Tokenizer& tokenizer)
    : template_{chat.source, tokenizer.special_tokens_map(), jinja::TemplateProgram(chat.source)},
      is_structured_(chat.is_structured) {
  const std::string base = render("", "alpha", "bravo");
  const bool has_query = render("", "charlie", "bravo") != base,
             has_document = render("", "alpha", "foxtrot") != base;
  TORCH_CHECK_VALUE(has_query && has_document,
                    "[chat_template] the template must write the content of messages with the "
                    "roles query and document. Got one that leaves out that of the ",
                    has_query ? "document" : "query");
}

std::string ChatPairs::render(const std::string& prompt, const std::string& query,
                              const std::string& document) const {
  using namespace jinja;
  TemplateValues messages;
  const auto add = [&](const char* role, const std::string& text) {
    TemplateValue content = text_value(text);
    if (is_structured_)
      content = list_value({dict_value({{"type", text_value("text")}, {"text", content}})});
    messages.push_back(dict_value({{"role", text_value(role)}, {"content", std::move(content)}}));
  };
  if (!prompt.empty()) add("system", prompt);
  add("query", query);
  add("document", document);
  return rendered_chat(template_, std::move(messages), {});
}

std::vector<int64_t> ChatPairs::tail(const Tokenizer& tokenizer, const std::string& prompt) const {
  const auto ids_of = [&](const char* filler) {
    return tokenizer.encode_ids(render(prompt, filler, filler), std::nullopt,
                                TokenizerOptions().add_special_tokens(false));
  };
  const std::vector<int64_t> a = ids_of("0"), b = ids_of("1 2 3 4");
  const auto ends = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  const bool differ = ends.first != a.rend() && ends.second != b.rend();
  return differ ? std::vector<int64_t>(ends.first.base(), a.end()) : std::vector<int64_t>();
}

}  // namespace posenc::text
