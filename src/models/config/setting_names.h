#pragma once

// The names that the configuration classes of transformers have for one setting. A class has at
// most one of them, besides its aliases (ConfigClass).
namespace posenc::hf {

inline constexpr const char* kDropout[] = {
    "hidden_dropout_prob", "hidden_dropout", "dropout",
    "embd_pdrop",          "embed_dropout",  "embedding_dropout"};
inline constexpr const char* kAttentionDropout[] = {"attention_probs_dropout_prob",
                                                    "attention_dropout", "attn_pdrop"};
/// Of what the blocks of a layer add, where a class tells it from that of embeddings.
inline constexpr const char* kResidualDropout[] = {"resid_pdrop", "resid_dropout",
                                                   "residual_dropout"};
/// Of elements between the two linear layers of a feed-forward network.
inline constexpr const char* kActivationDropout[] = {"activation_dropout", "mlp_dropout"};
/// Of whole layers, and of what a block adds.
inline constexpr const char* kLayerDropout[] = {"encoder_layerdrop", "layerdrop"};
inline constexpr const char* kPathDropout[] = {"drop_path_rate"};
inline constexpr const char* kEpsilon[] = {"layer_norm_eps", "norm_eps", "layer_norm_epsilon",
                                           "norm_epsilon"};
/// That of RMS norms.
inline constexpr const char* kRMSEpsilon[] = {"rms_norm_eps"};
inline constexpr const char* kPositions[] = {"max_position_embeddings",
                                             "max_encoder_position_embeddings"};
/// Whether tokens are multiplied by the square root of the width.
inline constexpr const char* kScale[] = {"scale_embedding", "rescale_embeddings"};
/// The width of the tables before a projection to hidden_size.
inline constexpr const char* kTableWidth[] = {"embedding_size", "input_embedding_size",
                                              "word_embed_proj_dim"};
/// The width inside a feed-forward network divided by hidden_size, as some classes have it.
inline constexpr const char* kFeedForwardRatio = "mlp_ratio";
/// That width, or the ratio. A class whose default is null makes it four times hidden_size.
inline constexpr const char* kFeedForward[] = {
    "intermediate_size", "encoder_ffn_dim", "hidden_dim",      "d_ff",           "d_inner",
    "n_inner",           "ffn_dim",         "ffn_hidden_size", kFeedForwardRatio};
inline constexpr const char* kActivation[] = {"hidden_act", "activation_function", "activation",
                                              "hidden_activation", "ff_activation"};

}  // namespace posenc::hf
