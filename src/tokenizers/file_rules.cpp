#include "tokenizers/file_rules.h"

#include <limits>

#include "tokenizers/definition/component.h"

namespace posenc::text {
namespace {

bool is_left(const Component& component, const char* field) {
  const std::string side = component.string(field);
  if (side != "Left" && side != "Right") component.refuse(field, "Left or Right");
  return side == "Left";
}

uint32_t small_number(const Component& component, const char* field) {
  const uint64_t number = component.number(field);
  if (number > std::numeric_limits<uint32_t>::max()) component.refuse(field, "less than 2^32");
  return static_cast<uint32_t>(number);
}

}  // namespace

std::optional<PaddingRule> read_padding(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  const Component component("padding", json);
  PaddingRule rule;
  const nlohmann::json& strategy = component.at("strategy");
  if (strategy.is_object() && strategy.size() == 1 && strategy.contains("Fixed")) {
    rule.length = Component("padding: `strategy`", strategy).number("Fixed");
  } else if (strategy != "BatchLongest") {
    component.refuse("strategy", R"("BatchLongest" or {"Fixed": length})");
  }
  rule.on_left = is_left(component, "direction");
  rule.pad_id = small_number(component, "pad_id");
  rule.pad_type_id = small_number(component, "pad_type_id");
  rule.pad_token = component.string("pad_token");
  rule.multiple = component.optional_number("pad_to_multiple_of");
  return rule;
}

std::optional<TruncationRule> read_truncation(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  const Component component("truncation", json);
  TruncationRule rule;
  rule.max_length = component.number("max_length");
  rule.stride = component.number("stride");
  rule.from_left = component.has("direction") && is_left(component, "direction");
  const std::string strategy = component.string("strategy");
  if (strategy == "LongestFirst") {
    rule.strategy = TruncationRule::Strategy::LongestFirst;
  } else if (strategy == "OnlyFirst") {
    rule.strategy = TruncationRule::Strategy::OnlyFirst;
  } else if (strategy == "OnlySecond") {
    rule.strategy = TruncationRule::Strategy::OnlySecond;
  } else {
    component.refuse("strategy", "LongestFirst, OnlyFirst or OnlySecond");
  }
  return rule;
}

}  // namespace posenc::text
