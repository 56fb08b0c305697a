#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tokenizers/pipeline/truncation.h"

namespace posenc::text {

/// The block `padding` of a tokenizer.json.
struct PaddingRule {
  std::optional<uint64_t> length;  ///< the longest sequence of the batch unless set
  bool on_left = false;
  uint32_t pad_id = 0, pad_type_id = 0;
  std::string pad_token;
  std::optional<uint64_t> multiple;
};

/// Nothing for null. Throws TokenizerError.
std::optional<PaddingRule> read_padding(const nlohmann::json& json);

/// The block `truncation`. Nothing for null. Throws TokenizerError.
std::optional<TruncationRule> read_truncation(const nlohmann::json& json);

}  // namespace posenc::text
