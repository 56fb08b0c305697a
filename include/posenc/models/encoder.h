#pragma once

// posenc-budget: the options, inputs and outputs of one class

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/models/attention_pooling.h"
#include "posenc/positions/nn/document_position_bias.h"
#include "posenc/positions/nn/encoder_embeddings.h"
#include "posenc/positions/nn/vision_embeddings.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/layers/window_encoder.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {

namespace encoder {

/// What an encoder returns for a whole sequence.
enum class Pooling {
  None,           ///< nothing
  TanhOfFirst,    ///< tanh(pooler(x)) of the first row: BERT, ViT
  First,          ///< the first row: DINOv2
  EndToken,       ///< the row of the first token that is eos_token_id: CLIP
  LargestToken,   ///< the row of the largest id: CLIP's files with eos_token_id 2
  LastEndToken,   ///< the row of the last token that is eos_token_id: classifiers of BART
  LinearOfFirst,  ///< pooler(x) of the first row: DPR
  LinearOfLast,   ///< pooler(x) of the last row: SigLIP's texts
  NormOfFirst,    ///< pooler_norm(x) of the first row: CLIP's images
  NormOfMean,     ///< pooler_norm(x) of the mean of all rows but the first: BEiT
  Attention,      ///< attention_pooler(x), of all rows: SigLIP's images
  /// The row of the last id that is not pad_token_id, the last row of inputs_embeds: classifiers of
  /// Llama's family.
  LastToken,
  Last,  ///< the last row, also if it is padding: XLM's summary
  Mean,  ///< the mean of all rows, also of padding: Swin, XLNet's summary
};

/// Where an encoder came from, which save_pretrained() needs to write it back.
struct Origin {
  std::string config;  ///< the text of its config.json; empty for options that were made by hand
  std::string folder;  ///< that it was loaded from; empty if it was not loaded
  std::string prefix;  ///< of the names of its tensors there, such as `bert.`
  int64_t layout = 0;  ///< which of the names that transformers knows its layers had there

  POSENC_FIELDS(Origin, config, folder, prefix, layout);
};

}  // namespace encoder

/// Options of Encoder; encoder_options_from_hf() has those of real models.
struct EncoderOptions {
  /// An encoder of token ids.
  EncoderOptions(EncoderEmbeddingsOptions embeddings, TransformerEncoderOptions encoder)
      : embeddings_(std::move(embeddings)), encoder_(std::move(encoder)) {}
  /// An encoder of images.
  EncoderOptions(VisionEmbeddingsOptions patches, TransformerEncoderOptions encoder)
      : patches_(std::move(patches)), encoder_(std::move(encoder)) {}
  /// An encoder of features, which are given as inputs_embeds (B, L, D).
  explicit EncoderOptions(TransformerEncoderOptions encoder) : encoder_(std::move(encoder)) {}
  /// An encoder of images in windows, whose encoder() has the options of the last of its layers.
  EncoderOptions(VisionEmbeddingsOptions patches, WindowEncoderOptions windows)
      : patches_(std::move(patches)),
        encoder_(windows.last_layer(), windows.num_layers()),
        windows_(std::move(windows)) {}

  /// The embeddings of token ids; nothing in an encoder of images or features.
  TORCH_ARG(std::optional<EncoderEmbeddingsOptions>, embeddings) = std::nullopt;
  /// The embeddings of images; nothing in an encoder of token ids or features.
  TORCH_ARG(std::optional<VisionEmbeddingsOptions>, patches) = std::nullopt;
  /// The layers.
  TORCH_ARG(TransformerEncoderOptions, encoder);
  /// The stages of an encoder of images in windows, in place of these layers; nothing in others.
  TORCH_ARG(std::optional<WindowEncoderOptions>, windows) = std::nullopt;
  /// An encoder-decoder in place of the embeddings and the layers, which are then options of its
  /// encoder. Its decoder gets the ids of the encoder, shifted by one to the right, and
  /// last_hidden_state is that of the decoder: below the heads of BART and T5. Token ids only,
  /// without hidden states and attentions.
  TORCH_ARG(std::optional<TransformerOptions>, transformer) = std::nullopt;
  /// The id before those that the decoder gets; unless set, the last id of each sequence that is
  /// not pad_token_id, as in mBART.
  TORCH_ARG(std::optional<int64_t>, decoder_start_token_id) = std::nullopt;
  /// Token i attends to tokens 0 .. i only: CLIP's text model, Llama.
  TORCH_ARG(bool, causal) = false;
  /// Multiplies the embeddings of padding by 0: XLM, ESM, conformers.
  TORCH_ARG(bool, zero_padding) = false;
  /// Multiplies the rows of padding by 0 after each layer too: XLM. Needs zero_padding.
  TORCH_ARG(bool, zero_hidden_padding) = false;
  /// Zeroes the vectors of tokens with this id before positions are added, and multiplies those of
  /// a sequence by 0.88 over the share of its other tokens, 0.88 being the share in training: ESM.
  TORCH_ARG(std::optional<int64_t>, token_dropout_id) = std::nullopt;
  /// Whether inputs_embeds are the input of the first layer as they are, (B, L, D): ESM.
  TORCH_ARG(bool, raw_inputs_embeds) = false;
  /// The id of padding. With zero_padding, where no attention_mask is given, the first n tokens of
  /// a sequence are real ones, of which it has n that are not this id. Pooling::LastToken needs it
  /// for more than one sequence.
  TORCH_ARG(std::optional<int64_t>, pad_token_id) = std::nullopt;
  /// Whether, where no attention_mask is given, the tokens whose id is pad_token_id are padding:
  /// DPR.
  TORCH_ARG(bool, masks_padding) = false;
  /// For images whose patches the layers rotate by their places: in training their coordinates are
  /// shifted, and multiplied, by numbers that RotaryPositionEmbedding2dOptions explains under
  /// `shift`, `jitter` and `rescale`; all layers share one draw. 0: not at all. DINOv3.
  TORCH_ARG(double, pos_embed_shift) = 0.0;
  /// See pos_embed_shift.
  TORCH_ARG(double, pos_embed_jitter) = 0.0;
  /// See pos_embed_shift.
  TORCH_ARG(double, pos_embed_rescale) = 0.0;
  /// A relative position bias of all layers by the places of tokens and their boxes: LayoutLMv3.
  TORCH_ARG(std::optional<DocumentPositionBiasOptions>, document_bias) = std::nullopt;
  /// Projects last_hidden_state to this width, by output_projection, without a bias: EmbeddingGemma
  /// 2, OPT. What is pooled is a row of it, without a pooler. None unless set.
  TORCH_ARG(std::optional<int64_t>, output_dim) = std::nullopt;
  /// What is returned for a whole sequence.
  TORCH_ARG(encoder::Pooling, pooling) = encoder::Pooling::None;
  /// Width of the pooled output of a linear pooler; d_model unless set.
  TORCH_ARG(std::optional<int64_t>, pooler_dim) = std::nullopt;
  /// The id of Pooling::EndToken and Pooling::LastEndToken.
  TORCH_ARG(int64_t, eos_token_id) = 2;
  /// Whether the last of EncoderOutput::hidden_states is before the norm after all layers, as in
  /// ViT, CLIP and conformers; otherwise it is last_hidden_state.
  TORCH_ARG(bool, hidden_states_before_norm) = false;
  /// Set by encoder_options_from_hf() and load_encoder(); changes nothing that is computed.
  TORCH_ARG(encoder::Origin, origin) = {};

  POSENC_FIELDS(EncoderOptions, embeddings_, patches_, encoder_, windows_, transformer_,
                decoder_start_token_id_, causal_, zero_padding_, zero_hidden_padding_,
                token_dropout_id_, raw_inputs_embeds_, pad_token_id_, masks_padding_,
                pos_embed_shift_, pos_embed_jitter_, pos_embed_rescale_, document_bias_,
                output_dim_, pooling_, pooler_dim_, eos_token_id_, hidden_states_before_norm_);
  POSENC_TRAINING_FIELDS(origin_);
};

/// Whether padding changes the rows of real tokens, whatever the attention_mask, as in FNet, whose
/// layers mix all tokens, and in MobileBERT, whose embeddings take the neighbours in, and ConvBERT,
/// whose convolution does. Each text of a batch is encoded as if alone only among texts of its
/// length.
bool sees_padding(const EncoderOptions& options);

/// Inputs of an encoder besides the ids; all are optional.
struct EncoderInputs {
  /// Bool or integer (B, L), nonzero for tokens and 0 for padding. FNet's layers see padding with
  /// any mask.
  TORCH_ARG(torch::Tensor, attention_mask) = {};
  /// Bool or integer (B, L), nonzero for rows that are computed although attention_mask hides them:
  /// they attend to tokens, and no token attends to them, as in ColBERT's query expansion. An
  /// Encoder computes all rows; in a FrozenEncoder others without a token are zeros.
  TORCH_ARG(torch::Tensor, computed_mask) = {};
  /// The type of each token, (B, L).
  TORCH_ARG(torch::Tensor, token_type_ids) = {};
  /// The position of each token, (L) or (B, L), in the embeddings or the rotary embedding.
  TORCH_ARG(torch::Tensor, position_ids) = {};
  /// The task type of each token, (B, L): ERNIE.
  TORCH_ARG(torch::Tensor, task_type_ids) = {};
  /// The box (x0, y0, x1, y1) of each token on its page, integers (B, L, 4): LayoutLM; zeros unless
  /// given.
  TORCH_ARG(torch::Tensor, bbox) = {};
  /// The vectors of the tokens, (B, L, E), in place of the rows of ids, which are then an undefined
  /// tensor: vectors of a prompt, for example. They are not scaled; positions and types are added,
  /// but with raw_inputs_embeds. An encoder of features takes these alone, (B, L, D): those of the
  /// convolutions of wav2vec2-conformer, after their projection.
  TORCH_ARG(torch::Tensor, inputs_embeds) = {};
  /// Whether EncoderOutput::hidden_states are returned.
  TORCH_ARG(bool, output_hidden_states) = false;
  /// Whether EncoderOutput::attentions are returned, which costs memory for the scores of all
  /// heads.
  TORCH_ARG(bool, output_attentions) = false;
};

/// The result of an encoder.
struct EncoderOutput {
  torch::Tensor embeddings;  ///< (B, L, D), the input of the first layer
  /// (B, L, D), after the last norm; in windows with a neck (B, C, h, w).
  torch::Tensor last_hidden_state;
  torch::Tensor pooled;  ///< (B, D'), undefined with Pooling::None
  /// The embeddings, then the output of each layer, (B, L, D); with output_hidden_states. In
  /// windows, those of a WindowEncoder.
  std::vector<torch::Tensor> hidden_states;
  /// The attention weights of each layer, (B, H, L, L); with output_attentions. In windows, those
  /// of a WindowEncoder.
  std::vector<torch::Tensor> attentions;
};

/// An encoder of token ids, images or features: embeddings, a TransformerEncoder or, for images, a
/// WindowEncoder, and a pooler. load_encoder()
/// makes one from a folder; freeze() makes a faster one for inference.
///
/// ids: (B, L), or pixel_values: (B, C, H, W)  ->  EncoderOutput.
///
/// Keys: `embeddings.*` (EncoderEmbeddings or VisionEmbeddings), `encoder.*` (TransformerEncoder or
/// WindowEncoder),
/// `pooler.weight`, `pooler.bias`, `pooler_norm.*` (LayerNorm), `attention_pooler.*`
/// (AttentionPooling), `document_bias.*` (DocumentPositionBias), `transformer.*` (Transformer),
/// `output_projection.weight`, as far as the options require them.
///
/// Errors: those of the embeddings; c10::TypeError for a mask of floating-point numbers;
/// c10::ValueError for one that is not (B, L), inputs that the embeddings lack, and bad options.
///
/// Source: `BertModel` and similar models in transformers 5.23.
class EncoderImpl : public Cloneable<EncoderImpl> {
 public:
  /// A module with the given options.
  explicit EncoderImpl(EncoderOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Encodes a batch of ids or of images.
  EncoderOutput forward(const torch::Tensor& input, const EncoderInputs& inputs = {});

  /// Makes the table of positions of an encoder of token ids longer, as
  /// EncoderEmbeddings::extend_positions() does; save_pretrained() then saves it with its new size.
  void extend_positions(int64_t max_tokens, PositionExtension rule);

  EncoderOptions options;                        ///< the options given to the constructor
  EncoderEmbeddings embeddings{nullptr};         ///< the embeddings of token ids
  VisionEmbeddings patches{nullptr};             ///< the embeddings of images
  TransformerEncoder encoder{nullptr};           ///< the layers
  WindowEncoder windows{nullptr};                ///< the stages, in place of the layers
  Transformer transformer{nullptr};              ///< in place of the embeddings and layers
  torch::nn::Linear pooler{nullptr};             ///< of a Pooling that has one
  LayerNorm pooler_norm{nullptr};                ///< of Pooling::NormOfFirst
  AttentionPooling attention_pooler{nullptr};    ///< of Pooling::Attention
  DocumentPositionBias document_bias{nullptr};   ///< with options.document_bias
  torch::nn::Linear output_projection{nullptr};  ///< with options.output_dim

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderInputs())})

 private:
  friend class DecoderImpl;

  EncoderOutput decoded(const torch::Tensor& ids, const EncoderInputs& inputs);
  torch::Tensor embed(const torch::Tensor& input, const EncoderInputs& inputs, int64_t offset);
  EncoderOutput step(const torch::Tensor& ids, std::vector<KeyValueCache>& caches,
                     const EncoderInputs& inputs);
};

TORCH_MODULE(Encoder);

/// The options of the encoder that a Hugging Face configuration describes: the path of a
/// config.json, or its text, which begins with a brace.
///
/// Errors: c10::ValueError for a model type that is unknown or that posenc cannot run (with what it
/// lacks) and for settings that are wrong; WeightsError for a file that cannot be read.
EncoderOptions encoder_options_from_hf(const std::string& config);

/// The values of `model_type` that load_encoder() knows, sorted.
std::vector<std::string> encoder_model_types();

/// Loads the encoder in a folder that Hugging Face's save_pretrained() wrote, in eval mode: from
/// config.json and model.safetensors, pytorch_model.bin or the shards of either.
///
/// ```cpp
/// auto bert = posenc::load_encoder("models/bert-base-uncased");
/// auto ids = torch::tensor({{101, 7592, 2088, 102}});
/// auto vectors = posenc::functional::mean_pool(bert->forward(ids).last_hidden_state);
/// ```
///
/// Heads are ignored. A file without a pooler gives no pooled output, nor does a model of
/// sentence-transformers, whose vectors later stages make (FolderInfo). All dtypes become float32.
/// `options`: prefix selects an encoder, or strips a wrapper's `module.`; key_map then renames
/// tensors to their names in transformers, or drops them. What transformers ignores in a file,
/// buffers of old releases and other heads are ignored; tensors of modules that the encoder does
/// not have are listed in options.report(); those inside a module that it has, such as the bias of
/// a linear layer without one, are errors unless allow_unexpected is set.
///
/// Errors: those of encoder_options_from_hf(); c10::ValueError for sizes in config.json that the
/// weights do not have and for other options; WeightsError for files and weights.
Encoder load_encoder(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
