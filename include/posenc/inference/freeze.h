#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"
#include "posenc/nn/transformer/transformer_encoder.h"

namespace posenc POSENC_EXPORT {
namespace inference {
struct TransformerEncoderModel;
struct TransformerModel;
struct FrozenAccess;
}  // namespace inference

/// Matrix-multiply backend of a frozen model.
enum class GemmBackend {
  /// The faster of the other two for each weight. freeze() measures both on a slice of the weight
  /// with one, a few and many rows, so freezing the same model again may give different bits.
  Autotune,
  Native,  ///< posenc's kernels: deterministic, and independent of the number of threads
  ATen,    ///< at::linear
};

/// How a frozen model holds the weights of its linear layers and its tables of tokens. All other
/// weights (norms, biases, positions, and the heads of classifiers unless tied) are float32.
enum class WeightDtype {
  Float32,  ///< shared with the source
  /// Copied in 8 bits, a quarter of the memory, and multiplied by inputs in 8 bits with exact sums.
  /// Each row of a weight, and of an input, has its own scale: 127 / its largest absolute value. So
  /// the result of a row does not depend on the rest of the batch. A row that is not finite gives
  /// NaN, and no other row does. docs/int8.md states the arithmetic, which gives the same bits on
  /// every processor and for any number of threads.
  Int8,
};

/// Options of freeze().
struct FreezeOptions {
  /// The matrix-multiply backend of float32 weights.
  TORCH_ARG(GemmBackend, gemm) = GemmBackend::Native;
  /// The dtype of the weights.
  TORCH_ARG(WeightDtype, weights) = WeightDtype::Float32;
  /// Weights that stay in float32, by their names in the state_dict; in a name an asterisk matches
  /// any sequence of characters: `decoder.layers.5.*`. A tied weight has the name under which it is
  /// registered.
  TORCH_ARG(std::vector<std::string>, weights_to_not_convert) = {};
};

/// The size in bytes of the weights that a frozen model keeps alive.
struct FrozenBytes {
  int64_t shared;  ///< weights that the source's tensors also hold, while these exist
  int64_t own;     ///< weights that only the frozen model holds
};

/// A TransformerEncoder for inference: forward() in eval mode without gradients, in float32 on the
/// CPU. The difference is typically at most 1e-5 of the largest output value; 1.5e-5 was seen at
/// d_ff 4096 with weights of one sign; with WeightDtype::Int8 it is about 0.02. Weights are not
/// copied, as the kernels read torch's layout,
/// except those that are not contiguous and those that a layer scale multiplies.
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
  /// of: a batch of unequal lengths costs its real tokens. A layer with a window computes the
  /// scores of the tokens in it only. position_ids: (L) or (B, L), those of TransformerEncoder.
  ///
  /// Errors: those of the module; c10::TypeError for dtypes other than float32.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {},
                        const torch::Tensor& position_ids = {}) const;

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

/// Freezes an encoder. The result computes the same as the model in eval mode; the model itself may
/// be in either mode.
///
/// Errors: c10::TypeError for parameters that are not float32; c10::ValueError for a device other
/// than the CPU, and for layers that were exchanged for some of another number of heads, layout,
/// order of norms or shape, which the error names; for an entry of weights_to_not_convert that
/// matches no weight; and with WeightDtype::Int8 for rows of more than 133,144 elements.
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
