#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "posenc/base/error.h"
#include "posenc/export.h"
#include "posenc/tokenizers/tokenizer.h"

// The only header of tokenizers that knows tensors. It has no source: who includes it has LibTorch.
namespace posenc POSENC_EXPORT {

/// A batch of B rows of L tokens.
struct TokenBatch {
  torch::Tensor input_ids;       ///< int64 (B, L)
  torch::Tensor attention_mask;  ///< int64 (B, L): 1 for tokens, 0 for padding
  /// int64 (B, L): 1 for the second text, or what the template says; 0 if the model takes none.
  torch::Tensor token_type_ids;
  /// int64 (B, L, 2), with TokenizerOptions::offsets: begin and end of each token in its text, in
  /// characters (code points). (0, 0) for special tokens and padding.
  torch::Tensor offsets;
  torch::Tensor row_texts;  ///< int64 (B): the index of the text that each row is of
};

namespace tokenizers {

/// Runs `work`, which has tensors in its signature: an ArgumentError becomes a c10::ValueError.
template <typename Work>
auto with_tensor_errors(Work&& work) {
  try {
    return work();
  } catch (const ArgumentError& error) {
    throw c10::ValueError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, error.what());
  }
}

/// The options for a call with tensors: with LibTorch's number of threads unless they have one.
inline TokenizerOptions with_tensor_threads(TokenizerOptions options) {
  if (!options.threads()) options.threads(at::in_parallel_region() ? 1 : at::get_num_threads());
  return options;
}

/// The tensors of a batch.
inline TokenBatch to_tensors(const EncodedBatch& encoded) {
  const auto empty = [](at::IntArrayRef sizes) { return at::empty(sizes, at::kLong); };
  const int64_t rows = encoded.rows(), columns = encoded.columns();
  TokenBatch batch;
  batch.input_ids = empty({rows, columns});
  batch.attention_mask = empty({rows, columns});
  batch.token_type_ids = empty({rows, columns});
  if (encoded.has_offsets()) batch.offsets = empty({rows, columns, 2});
  batch.row_texts = empty({rows});
  BatchMemory memory;
  memory.ids = batch.input_ids.mutable_data_ptr<int64_t>();
  memory.attention_mask = batch.attention_mask.mutable_data_ptr<int64_t>();
  memory.type_ids = batch.token_type_ids.mutable_data_ptr<int64_t>();
  if (encoded.has_offsets()) memory.offsets = batch.offsets.mutable_data_ptr<int64_t>();
  memory.row_texts = batch.row_texts.mutable_data_ptr<int64_t>();
  encoded.write(memory);
  return batch;
}

}  // namespace tokenizers

/// tokenizers::Tokenizer with tensors.
///
/// ```cpp
/// auto tokenizer = posenc::Tokenizer::from_folder("models/bert-base-uncased");
/// auto batch = tokenizer.encode({"Hello world", "How are you?"});
/// auto text = tokenizer.decode(batch.input_ids[0]);
/// ```
///
/// Errors: those of tokenizers::Tokenizer, but c10::ValueError in place of ArgumentError where
/// tensors come in or go out.
class Tokenizer : public tokenizers::Tokenizer {
 public:
  /// A tokenizer without tensors, with them.
  explicit Tokenizer(tokenizers::Tokenizer plain) : tokenizers::Tokenizer(std::move(plain)) {}
  /// tokenizers::Tokenizer::from_folder().
  static Tokenizer from_folder(const std::string& folder, bool lowercases_first = false,
                               const std::vector<std::string>& special_tokens = {}) {
    return Tokenizer(tokenizers::Tokenizer::from_folder(folder, lowercases_first, special_tokens));
  }
  /// tokenizers::Tokenizer::from_file().
  static Tokenizer from_file(const std::string& path) {
    return Tokenizer(tokenizers::Tokenizer::from_file(path));
  }

  /// Encodes texts, on LibTorch's number of threads unless the options have one.
  TokenBatch encode(const std::vector<std::string>& texts,
                    const TokenizerOptions& options = {}) const {
    return tokenizers::with_tensor_errors([&] {
      return tokenizers::to_tensors(
          tokenizers::Tokenizer::encode(texts, tokenizers::with_tensor_threads(options)));
    });
  }
  /// The same for pairs of texts; an empty second text is a pair too. (As an overload of encode()
  /// it would make `encode({"a", "b"})` ambiguous.)
  TokenBatch encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                          const TokenizerOptions& options = {}) const {
    return tokenizers::with_tensor_errors([&] {
      return tokenizers::to_tensors(
          tokenizers::Tokenizer::encode_pairs(pairs, tokenizers::with_tensor_threads(options)));
    });
  }

  using tokenizers::Tokenizer::decode;
  /// The text of ids (L); without special tokens unless `skip_special_tokens` is false.
  std::string decode(const torch::Tensor& ids, bool skip_special_tokens = true) const {
    TORCH_CHECK_VALUE(ids.defined() && ids.dim() == 1, "[Tokenizer] ids must be (L). Got ",
                      ids.defined() ? ids.dim() : 0, " dimensions");
    TORCH_CHECK_TYPE(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
                     "[Tokenizer] ids must be integers. Got ", ids.scalar_type());
    const torch::Tensor list = ids.to(at::kCPU, at::kLong).contiguous();
    const auto* const first = list.const_data_ptr<int64_t>();
    return tokenizers::with_tensor_errors([&] {
      return decode(std::vector<int64_t>(first, first + list.numel()), skip_special_tokens);
    });
  }
};

}  // namespace posenc
