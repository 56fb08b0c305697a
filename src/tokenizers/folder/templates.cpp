#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "tokenizers/folder/class_builder.h"

// Post-processors as Python writes them.
namespace posenc::text {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_template_piece(const std::string& text) {
  refuse("a template's piece",
         "be $A, $B or a token without a colon, with a type id after a colon or none", text);
}

uint64_t type_of(std::string_view digits, const std::string& piece) {
  uint32_t type = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), type);
  if (failure != std::errc() || end != digits.data() + digits.size()) refuse_template_piece(piece);
  return type;
}

json template_piece(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  uint64_t type = 0;
  if (colon != std::string::npos) type = type_of(std::string_view(text).substr(colon + 1), text);
  if (!name.starts_with('$')) return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  const std::string rest = name.substr(1);
  const char* id = "A";
  if (rest == "B" || rest == "b") {
    id = "B";
  } else if (rest != "" && rest != "A" && rest != "a") {
    const uint64_t given = type_of(rest, text);
    if (colon == std::string::npos) type = given;
  }
  return {{"Sequence", {{"id", id}, {"type_id", type}}}};
}

json template_list(const Template& pieces) {
  json list = json::array();
  for (const std::string& piece : pieces) list.push_back(template_piece(piece));
  return list;
}

}  // namespace

Template pieces_of(const std::string& text) {
  Template pieces(1);
  for (const char c : text) {
    if (c == ' ') {
      pieces.emplace_back();
    } else {
      pieces.back().push_back(c);
    }
  }
  return pieces;
}

void ClassBuilder::set_template(const Template& single, const Template& pair,
                                const std::vector<std::string>& specials) {
  std::vector<std::pair<std::string, uint64_t>> with_ids;
  for (const std::string& token : specials) with_ids.emplace_back(token, required_id(token));
  set_template_with_ids(single, pair, with_ids);
}

void ClassBuilder::set_template_with_ids(
    const Template& single, const Template& pair,
    const std::vector<std::pair<std::string, uint64_t>>& specials) {
  json tokens = json::object();
  for (const auto& [token, id] : specials) {
    tokens[token] = {{"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
  }
  definition.post_processor = {{"type", "TemplateProcessing"},
                               {"single", template_list(single)},
                               {"pair", template_list(pair)},
                               {"special_tokens", std::move(tokens)}};
}

void ClassBuilder::set_target_template(const Template& single, const Template& pair,
                                       const std::vector<std::string>& specials) {
  json source = std::move(definition.post_processor);
  set_template(single, pair, specials);
  definition.target_post_processor = std::exchange(definition.post_processor, std::move(source));
}

void ClassBuilder::update_post_processor() {
  const std::string bos = text_or_none("bos_token"), eos = text_or_none("eos_token");
  adds_bos_ &= has_named("bos_token");
  adds_eos_ &= has_named("eos_token");
  std::string single, pair;
  if (adds_bos_) single += bos + ":0 ";
  single += "$A:0";
  if (adds_eos_) single += " " + eos + ":0";
  pair = single;
  if (adds_bos_) pair += " " + bos + ":1";
  pair += " $B:1";
  if (adds_eos_) pair += " " + eos + ":1";
  std::vector<std::string> specials;
  if (adds_bos_) specials.push_back(bos);
  if (adds_eos_) specials.push_back(eos);
  set_template(pieces_of(single), pieces_of(pair), specials);
}

}  // namespace posenc::text
