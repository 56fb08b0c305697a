#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/models/classifier.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/tokenizers/tensors.h"
#include "tokenizers/pipeline/encoded_rows.h"

// From texts to the batches of a model, of all classes of posenc::text that run one.
namespace posenc::text {

using TextPair = std::pair<std::string, std::string>;

/// How a model is given texts, so that each is computed as if it were alone.
struct RowRules {
  TokenizerOptions options;             ///< truncation, and padding on the right
  bool takes_types = false;             ///< whether it is given token types
  bool needs_equal_lengths = false;     ///< whether padding would change what is computed
  std::vector<RotaryOptions> rotaries;  ///< whose frequencies depend on the longest row of a batch
  std::optional<int64_t> padding_id;    ///< what the model takes for padding, unlike the tokenizer
  int64_t most_rows = INT64_MAX;        ///< of a batch
};

/// The rules for an encoder's rows, and for a head's logits of them.
RowRules row_rules(const Tokenizer& tokenizer, const EncoderOptions& options,
                   std::optional<int64_t> max_length);
RowRules row_rules(const Tokenizer& tokenizer, const ClassifierOptions& options,
                   std::optional<int64_t> max_length);

/// The rows of texts: the tensors, and what else is known of each token.
class TextRows {
 public:
  TextRows(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
           const TokenizerOptions& options, const Requested& requested = {});
  TextRows(const Tokenizer& tokenizer, const std::vector<TextPair>& pairs,
           const TokenizerOptions& options, const Requested& requested = {});

  /// A row: tokens [begin, end) of `tokens`.
  struct Row {
    const EncodedRows& tokens;
    std::size_t begin, end;
    std::size_t text;     ///< the index of its text
    bool is_cut = false;  ///< whether a part of the text is not in it
    bool is_empty() const { return begin == end; }
  };
  std::size_t size() const { return rows_.size(); }
  Row row(std::size_t i) const;

  const TokenBatch& batch() const { return batch_; }
  /// Calls `tell`, unless it is empty, with the index of each text that was cut; `indices` are
  /// those of the texts for the caller.
  void tell_cut(const std::vector<int64_t>& indices,
                const std::function<void(int64_t)>& tell) const;

 private:
  TextRows(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts,
           const std::vector<std::string_view>& seconds, const TokenizerOptions& options,
           const Requested& requested);

  tokenizers::EncodedBatch encoded_;
  std::vector<std::pair<const EncodedRows*, std::size_t>> rows_;  // part, and row of it
  TokenBatch batch_;
};

/// Some rows of a TokenBatch as a model takes them.
struct ModelBatch {
  std::vector<int64_t> rows;  ///< their indices
  at::Tensor ids;
  EncoderInputs inputs;   ///< with the mask, and types if the model is given any
  at::Tensor mask;        ///< undefined if no row is padded
  at::Tensor added = {};  ///< the rows of what was given as `added`
};

constexpr int64_t kAllRows = INT64_MAX;

/// All rows of a batch, at most `most_rows` at a time. `added`, which may be undefined, is (B, L).
std::vector<ModelBatch> model_batches(const RowRules& rules, const TokenBatch& batch,
                                      int64_t most_rows, const at::Tensor& added = {});

/// The prompt that is put before texts: of a call's options, of their task, or else a folder's
/// default.
template <typename Options, typename Folder>
std::string prompt_of(const char* caller, const Options& options, const Folder& folder) {
  TORCH_CHECK_VALUE(!options.prompt() || !options.prompt_name(), "[", caller,
                    "] prompt and prompt_name must not both be set");
  if (options.prompt()) return *options.prompt();
  if (options.prompt_name()) return named_prompt(folder.prompts, *options.prompt_name());
  if constexpr (requires { options.task(); }) {  // every folder has these prompts
    if (options.task() == sentence::Task::Query) return named_prompt(folder.prompts, "query");
    if (options.task() == sentence::Task::Document) return named_prompt(folder.prompts, "document");
  }
  const auto& name = folder.default_prompt_name;
  return name ? named_prompt(folder.prompts, *name) : "";
}

/// Indices of texts of these sizes, long ones first, so that those of a batch have about one
/// length; at most `batch_size` at a time.
std::vector<std::vector<int64_t>> batches_by_size(const std::vector<std::size_t>& sizes,
                                                  int64_t batch_size);

inline std::size_t size_of(const std::string& text) { return text.size(); }
inline std::size_t size_of(const TextPair& pair) { return pair.first.size() + pair.second.size(); }

/// Throws c10::ValueError unless `value`, an option of the class `caller`, is positive.
void check_positive(const char* caller, const char* option, int64_t value);

inline std::string with_prompt(const std::string& prompt, const std::string& text) {
  return prompt + text;
}
inline TextPair with_prompt(const std::string& prompt, const TextPair& pair) {
  return {prompt + pair.first, pair.second};
}

/// Calls `work(indices, batch)` for batches of texts, or pairs, of about one length, with the
/// prompt in front of each.
template <typename Text, typename Work>
void each_batch(const std::vector<Text>& texts, int64_t batch_size, const std::string& prompt,
                Work&& work) {
  std::vector<std::size_t> sizes;
  sizes.reserve(texts.size());
  for (const Text& text : texts) sizes.push_back(size_of(text));
  for (const std::vector<int64_t>& indices : batches_by_size(sizes, batch_size)) {
    std::vector<Text> batch;
    batch.reserve(indices.size());
    for (const int64_t i : indices)
      batch.push_back(with_prompt(prompt, texts[static_cast<std::size_t>(i)]));
    work(indices, batch);
  }
}

}  // namespace posenc::text
