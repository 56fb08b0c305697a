#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/generate.h"
#include "posenc/transformer/transformer.h"

namespace posenc POSENC_EXPORT {

class FrozenTransformer;
namespace inference {
class SourceMemory;
}

/// A head of a decoder's layer.
struct LayerHead {
  int64_t layer;  ///< from 0 on
  int64_t head;   ///< from 0 on
};

/// Sources that a Transformer or a FrozenTransformer has encoded, with the keys and values of them
/// that each layer of its decoder attends to. Both are computed once, and shared by the beams of a
/// search, by several searches such as retries at other temperatures, and by passes without one.
///
/// Copies, and what select() returns, share what was encoded, and an object may be used by several
/// threads at a time. It keeps the model alive, and its own copy of the sources and their mask. The
/// model's weights must not change: with a frozen model each call then throws the error of
/// FrozenTransformerEncoder, a Transformer's weights are not compared.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// model->eval();
/// auto sources = posenc::encode_sources(model, torch::tensor({{5, 6, 7, 8}, {9, 5, 3, 4}}));
/// posenc::GenerateOptions options(/*bos=*/1, /*eos=*/2);
/// options.max_new_tokens(8);
/// auto found = sources.generate(options);
/// auto again = sources.select({1}).generate(options.do_sample(true).temperature(0.2));
/// torch::Tensor first = sources.next_logits({{1}, {1}});  // (2, 100)
/// ```
///
/// Errors, also of the methods: c10::ValueError for a Transformer of which a module is in training
/// mode, and for an object that was moved from.
class EncodedSources {
 public:
  /// The number of sources.
  int64_t size() const;

  /// The sources of these indices, in this order; each may occur several times.
  ///
  /// Errors: c10::ValueError for an index outside [0, size()).
  EncodedSources select(const std::vector<int64_t>& sources) const;

  /// posenc::generate() of these sources. Lists of options that have one element for each source
  /// have size() elements.
  ///
  /// Errors: those of posenc::generate(); c10::ValueError for encoder_repetition_penalty and
  /// encoder_no_repeat_ngram_size where the sources are features, which have no ids.
  std::vector<std::vector<Hypothesis>> generate(const GenerateOptions& options) const;

  /// The logits (size(), V) in float32 of the token after each target, whose tokens are decoded at
  /// once; no setting of a search is applied. The targets may have different lengths.
  ///
  /// Errors: c10::ValueError for another number of targets, an empty target, ids outside the
  /// vocabulary, and more tokens than max_len.
  torch::Tensor next_logits(const std::vector<std::vector<int64_t>>& targets) const;

  /// The weights of the attention to each source, (heads.size(), tokens, S) in float32 on the CPU:
  /// row i is what token i of its target attends to when it is read, to predict the token after it.
  /// They sum to 1; padding has 0. Those of transformers' `cross_attentions`.
  ///
  /// Errors: those of next_logits(); c10::ValueError for a layer or head that the decoder does not
  /// have.
  std::vector<torch::Tensor> attention(const std::vector<std::vector<int64_t>>& targets,
                                       const std::vector<LayerHead>& heads) const;

 private:
  friend class inference::SourceMemory;
  EncodedSources(std::shared_ptr<const inference::SourceMemory> memory,
                 std::vector<int64_t> sources);

  std::shared_ptr<const inference::SourceMemory> memory_;
  std::vector<int64_t> sources_;  // of the memory
};

/// Encodes sources: `src` and `src_mask` are those of the model's encode(), ids (B, S) or features
/// (B, M, frames).
///
/// Errors: those of encode(); c10::ValueError for an empty holder.
EncodedSources encode_sources(const Transformer& model, const torch::Tensor& src,
                              const AttentionMask& src_mask = {});
/// Encodes sources with a frozen model. With GemmBackend::Native and generators of their own the
/// results of a source do not depend on the others in any bit, but for sources of at most 8 tokens
/// whose encoder has float32 products, which may in the last ones: kernels::inference has two that
/// sum in different orders, for few rows and for many. Each step computes its products in the order
/// of one source's rows, where posenc::generate() takes the one that is faster for all.
EncodedSources encode_sources(const FrozenTransformer& model, const torch::Tensor& src,
                              const AttentionMask& src_mask = {});

}  // namespace posenc
