#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace posenc::text {

/// A token that a post-processor adds.
struct SpecialToken {
  uint32_t id;
  std::string token;
};

/// What a post-processor makes of one or two texts, for one way to ask: a list of encodings, which
/// are joined. A text that was cut has windows, of which the first is the main one; types can
/// differ between it and the others, as the package's post-processors change the main one alone.
struct Plan {
  struct Special {
    SpecialToken token;
    uint32_t type, window_type;
    bool is_marked;  ///< in the mask of special tokens: an outer processor takes the mark away
  };
  /// Leading and trailing blanks of tokens are taken out of their offsets.
  struct Trim {
    bool add_prefix_space;
    bool is_at_begin;  ///< no special token came before the text then
  };
  struct Encoding {
    std::vector<Special> before, after;
    std::optional<int> text;  ///< 0, or 1 for the second
    uint32_t type = 0, window_type = 0;
    std::vector<Trim> trims;
  };

  std::vector<Encoding> encodings;
  std::string problem;  ///< why the package panics; empty if it does not
};

/// The post-processor of a tokenizer.
class PostProcessor {
 public:
  /// Reads a component of tokenizer.json, or null for none. Throws TokenizerError.
  explicit PostProcessor(const nlohmann::json& component);

  /// Throws TokenizerError where the package panics.
  const Plan& plan(bool is_pair, bool add_special_tokens) const;
  /// Number of special tokens, which truncation has to leave room for.
  std::size_t added_tokens(bool is_pair) const { return added_[is_pair]; }
  /// Whether offsets depend on how tokens are spelled.
  bool trims() const { return trims_; }

 private:
  void apply(const nlohmann::json& component);
  void apply_template(const nlohmann::json& component, const std::string& part);
  void apply_pair(const nlohmann::json& component, const std::string& part, bool is_roberta);
  void trim(bool add_prefix_space);

  Plan plans_[2][2];  // by is_pair and add_special_tokens
  std::size_t added_[2] = {0, 0};
  bool trims_ = false;
};

}  // namespace posenc::text
