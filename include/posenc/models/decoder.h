#pragma once

// posenc-budget: one model, its options and its functions

#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"
#include "posenc/inference/generate.h"
#include "posenc/models/encoder.h"
#include "posenc/transformer/attention/key_value_cache.h"
#include "posenc/transformer/output_projection.h"
#include "posenc/weights/load.h"

namespace posenc {
struct TokenRuns;  // private
}

namespace posenc POSENC_EXPORT {

/// Options of Decoder; decoder_options_from_hf() has those of real models.
struct DecoderOptions {
  /// A decoder with these embeddings and layers, which are causal.
  explicit DecoderOptions(EncoderOptions model) : model_(std::move(model)) {}

  /// The embeddings, layers and last norm; EncoderOptions::causal is true.
  TORCH_ARG(EncoderOptions, model);
  /// Whether the output layer's weight is the table of tokens (V, D).
  TORCH_ARG(bool, tied) = false;
  /// Whether the output layer has a bias: Phi, GPT-J.
  TORCH_ARG(bool, head_bias) = false;
  /// Multiplies the logits: Cohere's logit_scale, 1 / Granite's logits_scaling.
  TORCH_ARG(double, logit_scale) = 1.0;
  /// Then logits become softcap * tanh(logits / softcap): Gemma 2.
  TORCH_ARG(std::optional<double>, logit_softcap) = std::nullopt;
  /// The most columns that generate() makes where no option names a length
  /// (max_position_embeddings); any number unless set.
  TORCH_ARG(std::optional<int64_t>, max_positions) = std::nullopt;
  /// The most tokens of a row, where it is not a table of positions that bounds them: GPT-J, MPT.
  TORCH_ARG(std::optional<int64_t>, max_tokens) = std::nullopt;
  /// The length of a row at which generate() computes it anew, since the frequencies of
  /// rotary::LongRope change for all of its keys: Phi-3. Otherwise keys keep their rotation.
  TORCH_ARG(std::optional<int64_t>, restart_length) = std::nullopt;

  POSENC_FIELDS(DecoderOptions, model_, tied_, head_bias_, logit_scale_, logit_softcap_,
                max_positions_, max_tokens_, restart_length_);
};

/// Inputs of a decoder besides the ids; all are optional.
struct DecoderInputs {
  /// Bool or integer, nonzero for tokens and 0 for padding, on either side of them: (B, L), and in
  /// step() (B, T), T the tokens in the caches and the new ones. All are tokens unless given.
  TORCH_ARG(torch::Tensor, attention_mask) = {};
  /// Integers (B, L), the position of each token in its sequence, where a row is several sequences
  /// one after another: each begins at 0 and sees none of the others, and has the result that it
  /// has alone, as in a batch of transformers' DataCollatorWithFlattening. Without attention_mask
  /// and last_logits_only, and not in step().
  TORCH_ARG(torch::Tensor, position_ids) = {};
  /// Whether DecoderOutput::hidden_states are returned.
  TORCH_ARG(bool, output_hidden_states) = false;
  /// Whether logits are computed of the last token of each row only, (B, 1, V).
  TORCH_ARG(bool, last_logits_only) = false;
};

/// The result of a decoder.
struct DecoderOutput {
  torch::Tensor logits;             ///< (B, L, V)
  torch::Tensor last_hidden_state;  ///< (B, L, D), after the last norm
  /// The embeddings, then the output of each layer, (B, L, D); with output_hidden_states.
  std::vector<torch::Tensor> hidden_states;
};

/// A decoder-only language model: the embeddings and causal layers of an Encoder, and an output
/// layer. load_decoder() makes one from a folder; freeze() makes a faster one for inference.
///
/// ids: (B, L)  ->  DecoderOutput.
///
/// A row's result is that of the row alone, without its padding: positions count tokens, and
/// padding, which may be on either side, is seen by none. The rows of padding are finite.
///
/// Keys: `model.*` (Encoder); `lm_head.weight` (V, D) unless tied, `lm_head.bias` (V) with
/// head_bias.
///
/// Errors: those of Encoder; c10::ValueError for ids outside the vocabulary at tokens, a mask of
/// another shape, with a hole, or with a row without a token, and position_ids of another shape or
/// that do not count from 0.
///
/// Source: the `...ForCausalLM` classes of transformers 5.23.
class DecoderImpl : public Cloneable<DecoderImpl>, public StateDictTraits {
 public:
  /// A module with the given options.
  explicit DecoderImpl(DecoderOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// A deep copy, tied as this model is.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override;
  std::vector<TiedName> tied_names() const override;

  /// Computes the logits and hidden states of all columns.
  DecoderOutput forward(const torch::Tensor& ids, const DecoderInputs& inputs = {});

  /// Empty caches, one a layer, for `capacity` tokens of `batch` rows.
  std::vector<KeyValueCache> make_caches(int64_t batch, int64_t capacity) const;
  /// forward() of the next columns (B, t), after those in the caches, which are extended. Steps of
  /// any size give the results of forward() for all columns, unless the frequencies of the rotary
  /// embedding depend on the length of the call. For inference; an error leaves the caches as they
  /// were.
  DecoderOutput step(const torch::Tensor& ids, std::vector<KeyValueCache>& caches,
                     const DecoderInputs& inputs = {});

  /// The most tokens of a row: those of its table of positions, or options.max_tokens; the largest
  /// int64_t where nothing bounds them.
  int64_t most_tokens() const;

  DecoderOptions options;             ///< the options given to the constructor
  Encoder model{nullptr};             ///< the embeddings and layers
  OutputProjection lm_head{nullptr};  ///< the output layer

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(DecoderInputs())})

 private:
  EncoderOutput hidden_rows(const TokenRuns& runs, bool output_hidden_states);
  void tie();
};

TORCH_MODULE(Decoder);

/// The options of the decoder that a Hugging Face configuration describes: the path of a
/// config.json, or its text, which begins with a brace.
///
/// Errors: c10::ValueError for a model type that is unknown or that posenc cannot run (with what it
/// lacks) and for settings that are wrong; WeightsError for a file that cannot be read.
DecoderOptions decoder_options_from_hf(const std::string& config);

/// The values of `model_type` that load_decoder() knows, sorted.
std::vector<std::string> decoder_model_types();

/// Loads a decoder-only language model from a folder that Hugging Face's save_pretrained() wrote,
/// in eval mode: from config.json and model.safetensors, pytorch_model.bin or the shards of either.
/// docs/decoders.md has the model types.
///
/// ```cpp
/// auto model = posenc::load_decoder("models/gpt2");
/// auto found = posenc::generate(model, {{46, 32}},
/// posenc::load_generation_config("models/gpt2"));
/// ```
///
/// All dtypes become float32. The file decides whether the output layer is the table of tokens, as
/// in transformers 5. Buffers of old releases are ignored; any other tensor that the model does not
/// have is an error, as is one that is missing. `options` are those of load_encoder().
///
/// Errors: those of decoder_options_from_hf(); c10::ValueError for sizes in config.json that the
/// weights do not have; WeightsError for files and weights.
Decoder load_decoder(const std::string& folder, const LoadOptions& options = {});

/// Continues prompts, lists of ids, by greedy search, beam search or sampling: prompts.size() lists
/// of GenerateOptions::num_return_sequences hypotheses, whose tokens are the new ones.
///
/// GenerateOptions: a prompt takes the place of a target's prefix. It counts for all settings that
/// look at columns, not for scores; bos_id, prefixes, hidden_columns, coverage_penalty,
/// return_attention and encoder_* settings are not for decoders. Prompts are read
/// whole. Each row has the result, and the lengths, that it has alone. The model has to be in eval
/// mode.
///
/// Errors: those of generate(); c10::ValueError for an empty prompt, ids outside the vocabulary,
/// max_length that a prompt fills, and more columns than a table of positions has.
std::vector<std::vector<Hypothesis>> generate(DecoderImpl& model,
                                              const std::vector<std::vector<int64_t>>& prompts,
                                              const GenerateOptions& options);
/// generate() for the model of a holder.
std::vector<std::vector<Hypothesis>> generate(const Decoder& model,
                                              const std::vector<std::vector<int64_t>>& prompts,
                                              const GenerateOptions& options);

/// The log probability of each token of given texts but the first, which a list has none for: of
/// token i + 1 given tokens 0 .. i.
///
/// Errors: c10::ValueError for a model in training mode, an empty text, and ids outside the
/// vocabulary.
std::vector<std::vector<double>> score(DecoderImpl& model,
                                       const std::vector<std::vector<int64_t>>& texts);
/// score() for the model of a holder.
std::vector<std::vector<double>> score(const Decoder& model,
                                       const std::vector<std::vector<int64_t>>& texts);

}  // namespace posenc
