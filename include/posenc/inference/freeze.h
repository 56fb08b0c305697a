#pragma once

#include <iosfwd>
#include <memory>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/inference/generate.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/transformer.h"

namespace posenc POSENC_EXPORT {
namespace inference {
struct TransformerEncoderModel;
struct TransformerModel;
struct FrozenAccess;
}  // namespace inference

/// A TransformerEncoder for inference: forward() in eval mode without gradients, in float32 on the
/// CPU, also where autocast is on. The difference is typically at most 1e-5 of the largest output
/// value; 1.5e-5 was seen at d_ff 4096 with weights of one sign; with WeightDtype::Int8 it is about
/// 0.02. Weights in float32 are not copied, as the kernels read torch's layout, except those that
/// are not contiguous and those that a layer scale multiplies.
///
/// An object may be used by several threads at a time, and copies refer to the same object. It
/// keeps the weights alive, but not the modules. If the source is modified while it exists, each
/// call throws a c10::Error that asks for a new freeze(). This detects operations that write in
/// place to a parameter or buffer, such as loading or an optimiser's step, since they increment the
/// tensor's version; to() and set_data(); modules that were added, removed or replaced; other
/// options of a layer, a norm, an attention or an embedding; and the replacement of a parameter
/// whose tensor no one else holds. It does not detect a member that is assigned without
/// replace_module(); writes that bypass the tensor's version, by pointer or through `.data()` as in
/// torch::optim::SGD; any writes to a model made in InferenceMode, whose tensors have no version;
/// and the replacement of a tensor that the program still holds, or of any in a model that is a
/// local variable and not a holder's.
class FrozenTransformerEncoder {
 public:
  /// x: (B, L, D)  ->  (B, L, D); (L, B, D) with batch_first(false). The rows of keys that
  /// key_padding() and padding() mask are not computed and are zero, whatever else `mask` consists
  /// of: a batch of unequal lengths costs its real tokens. Without Mixing::Attention tokens see
  /// padding, and all rows are computed. A layer with a window computes the scores of the tokens in
  /// it only. position_ids: (L) or (B, L), those of TransformerEncoder.
  ///
  /// Errors: those of the module; c10::TypeError for dtypes other than float32; c10::ValueError, as
  /// in the other methods, for an object that was moved from.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {},
                        const torch::Tensor& position_ids = {}) const;
  /// forward() that also records the hidden states, in which the rows of masked keys are zero after
  /// the layers; c10::ValueError for output_attentions, which the module has. `segments`, `grid`
  /// and `kept_rows`: those of TransformerEncoder::forward_with().
  torch::Tensor forward_with(const torch::Tensor& x, const AttentionMask& mask,
                             TransformerEncoderRecord& record,
                             const torch::Tensor& position_ids = {},
                             const torch::Tensor& segments = {},
                             std::optional<relative::Grid> grid = std::nullopt,
                             const torch::Tensor& kept_rows = {}) const;

  /// The options of the source.
  const TransformerEncoderOptions& options() const;
  /// The size of the weights.
  FrozenBytes bytes() const;

 private:
  friend struct inference::FrozenAccess;
  explicit FrozenTransformerEncoder(std::shared_ptr<const inference::TransformerEncoderModel> model)
      : model_(std::move(model)) {}

  std::shared_ptr<const inference::TransformerEncoderModel> model_;
};

/// A Transformer for inference; see FrozenTransformerEncoder.
class FrozenTransformer {
 public:
  /// Returns the memory (B, S, D) of src (B, S); rows of masked padding are zero.
  torch::Tensor encode(const torch::Tensor& src, const AttentionMask& src_mask = {}) const;
  /// Returns the logits (B, L, tgt_vocab) for all tokens of tgt (B, L).
  torch::Tensor decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                       const AttentionMask& tgt_mask = {},
                       const AttentionMask& memory_mask = {}) const;

  /// The options of the source.
  const TransformerOptions& options() const;
  /// The size of the weights.
  FrozenBytes bytes() const;

 private:
  friend struct inference::FrozenAccess;
  explicit FrozenTransformer(std::shared_ptr<const inference::TransformerModel> model)
      : model_(std::move(model)) {}

  std::shared_ptr<const inference::TransformerModel> model_;
};

/// Freezes an encoder. The result computes the same as the model in eval mode, whatever its mode.
///
/// Errors: c10::TypeError for parameters that are not float32; c10::ValueError for other devices
/// than the CPU, layers of another layout, order of norms or number of heads than the stack's, or
/// without the parts and shapes that their own options describe (the error names them), an entry
/// of weights_to_not_convert that matches no weight, and Int8 for rows of over 66,571 elements.
FrozenTransformerEncoder freeze(const TransformerEncoderImpl& model,
                                const FreezeOptions& options = {});
/// freeze() for the encoder of a holder.
FrozenTransformerEncoder freeze(const TransformerEncoder& model, const FreezeOptions& options = {});
/// The same; the holder is empty afterwards, as in freeze(Transformer&&, const FreezeOptions&).
FrozenTransformerEncoder freeze(TransformerEncoder&& model, const FreezeOptions& options = {});
/// Freezes a Transformer, as freeze(const TransformerEncoderImpl&, const FreezeOptions&) does.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// auto frozen = posenc::freeze(model);
/// torch::Tensor src = torch::tensor({{5, 6, 7, 8}});
/// auto found = posenc::generate(frozen, src, {}, posenc::GenerateOptions(/*bos=*/1, /*eos=*/2));
/// ```
///
/// Errors: the same; c10::ValueError for an embedding without a table of positions.
FrozenTransformer freeze(const TransformerImpl& model, const FreezeOptions& options = {});
/// freeze() for the Transformer of a holder.
FrozenTransformer freeze(const Transformer& model, const FreezeOptions& options = {});
/// The same; the holder is empty afterwards, so that weights that were converted to another dtype
/// are freed unless the program holds them elsewhere. If an error is thrown, the holder is
/// unchanged.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// auto frozen = posenc::freeze(std::move(model),
///                              posenc::FreezeOptions().weights(posenc::WeightDtype::Int8));
/// ```
FrozenTransformer freeze(Transformer&& model, const FreezeOptions& options = {});

/// generate() for a frozen model, with the results of the unfrozen one. A change of the source
/// while it runs, by the callback or another thread, is the error of FrozenTransformerEncoder. It
/// encodes without padding, stores keys and values of the memory once for all beams of a source,
/// and reads each weight once per token.
std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options);
/// generate() for a frozen model and sources without padding.
std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const GenerateOptions& options);

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const FrozenTransformerEncoder& model);
/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const FrozenTransformer& model);

}  // namespace posenc
