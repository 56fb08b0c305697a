#include "text/chat_template/pairs.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace posenc::text {
namespace {

using Json = nlohmann::json;

// What a template may name beside the messages: `special_tokens_map` of transformers and defaults.
Json names_beside(const Tokenizer& tokenizer) {
  Json names = {{"tools", nullptr}, {"documents", nullptr}, {"add_generation_prompt", false}};
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const auto id = tokenizer.special_token_id(name);
    if (!id) continue;
    if (const auto token = tokenizer.id_to_token(*id)) names[name] = *token;
  }
  return names;
}

}  // namespace

ChatPairs::ChatPairs(const sentence::ChatTemplate& chat, const Tokenizer& tokenizer)
    : template_(chat.source), is_structured_(chat.is_structured), names_(names_beside(tokenizer)) {
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
  Json names = names_;
  names["messages"] = Json::array();
  const auto add = [&](const char* role, const std::string& text) {
    Json content = text;
    if (is_structured_) content = Json::array({{{"type", "text"}, {"text", text}}});
    names["messages"].push_back({{"role", role}, {"content", std::move(content)}});
  };
  if (!prompt.empty()) add("system", prompt);
  add("query", query);
  add("document", document);
  return template_.render(names);
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
