#include "tokenizers/post_processors/template.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"
#include "posenc/tokenizers/error.h"

namespace posenc::text {
namespace {

uint32_t number_of(const Component& component, const char* field) {
  const uint64_t number = component.number(field);
  if (number > std::numeric_limits<uint32_t>::max()) component.refuse(field, "less than 2^32");
  return static_cast<uint32_t>(number);
}

}  // namespace

TemplateProcessing::TemplateProcessing(const Component& component) : part_(component.part()) {
  read_special_tokens(component);
  pieces_[0] = read(component, "single");
  pieces_[1] = read(component, "pair");
}

void TemplateProcessing::read_special_tokens(const Component& component) {
  for (const auto& [name, json] : component.object("special_tokens").items()) {
    const Component token(part_ + ": special token " + io::in_quotes(name), json);
    token.string("id");
    const nlohmann::json& ids = token.array("ids");
    const nlohmann::json& texts = token.array("tokens");
    if (ids.size() != texts.size()) token.refuse("tokens", "as many as `ids`");
    auto& list = special_tokens_[name];
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool is_id = ids[i].is_number_unsigned() &&
                         ids[i].get<uint64_t>() <= std::numeric_limits<uint32_t>::max();
      if (!is_id) token.refuse("ids", "ids of tokens");
      if (!texts[i].is_string()) token.refuse("tokens", "strings");
      list.push_back({ids[i].get<uint32_t>(), texts[i].get<std::string>()});
    }
  }
}

std::vector<TemplateProcessing::Piece> TemplateProcessing::read(const Component& component,
                                                                const char* field) const {
  std::vector<Piece> pieces;
  for (const auto& json : component.array(field)) {
    pieces.push_back(read_piece(component, field, json));
  }
  return pieces;
}

TemplateProcessing::Piece TemplateProcessing::read_piece(const Component& component,
                                                         const char* field,
                                                         const nlohmann::json& json) const {
  const std::string rule = R"(pieces {"Sequence": {...}} and {"SpecialToken": {...}})";
  if (!json.is_object() || json.size() != 1) component.refuse(field, rule);
  const std::string kind = json.begin().key();
  const Component piece(part_ + ": `" + field + "`: " + kind, json.begin().value());
  if (kind == "SpecialToken") {
    const std::string name = piece.string("id");
    if (!special_tokens_.contains(name)) piece.refuse("id", "a name in `special_tokens`");
    return {std::nullopt, name, number_of(piece, "type_id")};
  }
  if (kind != "Sequence") component.refuse(field, rule);
  const std::string text = piece.string("id");
  if (text != "A" && text != "B") piece.refuse("id", "A or B");
  return {text == "A" ? 0 : 1, "", number_of(piece, "type_id")};
}

std::size_t TemplateProcessing::added_tokens(bool is_pair) const {
  std::size_t added = 0;
  for (const Piece& piece : pieces_[is_pair]) {
    if (!piece.text) added += special_tokens_.at(piece.special).size();
  }
  return added;
}

Plan TemplateProcessing::apply(Plan plan, bool is_pair, bool with_special) const {
  Plan made;
  for (const Piece& piece : pieces_[is_pair]) {
    Plan::Encoding encoding;
    if (piece.text) {
      const auto index = static_cast<std::size_t>(*piece.text);
      if (index >= plan.encodings.size()) {
        made.problem = part_ + ": `single`: must have no second text. tokenizers panics";
        return made;
      }
      encoding = plan.encodings[index];
      encoding.type = piece.type;
      for (auto* list : {&encoding.before, &encoding.after}) {
        for (Plan::Special& special : *list) special.type = piece.type;
      }
    } else if (with_special) {
      for (const SpecialToken& token : special_tokens_.at(piece.special)) {
        encoding.before.push_back({token, piece.type, piece.type, true});
      }
    } else {
      continue;
    }
    made.encodings.push_back(std::move(encoding));
  }
  return made;
}

}  // namespace posenc::text
