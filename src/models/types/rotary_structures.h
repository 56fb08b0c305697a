#pragma once

#include <cstdint>
#include <span>

namespace posenc {

/// Which parameters a layer takes from those that are not grouped by layer type: from
/// `rope_scaling`, or directly from rope_parameters.
enum class SharedParameters : uint8_t {
  None,
  Override,  ///< `rope_scaling` only, which overrides the layer's own
  Scaling,   ///< the scaling; base and share stay the layer's
  All,       ///< everything
};

/// What one kind of layer takes from outside its rope_parameters, for models with several.
struct RotaryLayer {
  const char* layer_type;
  const char* theta_key = "";    ///< the key outside rope_parameters for its base, or none
  const char* partial_key = "";  ///< the key outside rope_parameters for its share, or none
  SharedParameters shared = SharedParameters::None;
  double yarn_attention_factor = 0.0;  ///< of shared parameters of type yarn without one; 0: none
};

/// How a model reads its configuration where that is unusual. The defaults of the settings are
/// those of its configuration class, and so are the layer types: those of its rope_parameters.
struct RotaryStructure {
  const char* head_dim_key = "head_dim";  ///< empty: always hidden / heads
  const char* rope_dim_key = "";   ///< where head_dim_key is absent, its part that rotates, or none
  const char* more_key = "";       ///< the other part, or none; the share that rotates follows
  const char* divisor_key = "";    ///< a further divisor of hidden / heads, or none
  int64_t divisor = 1, times = 1;  ///< of hidden / heads, always
  int64_t least = 1;               ///< hidden / heads is at least this
  int64_t global_head_dim = 0;  ///< head_dim of layers of full attention, by default; 0: the same
  const char* hidden_key = "hidden_size";
  const char* heads_key = "num_attention_heads";
  const char* theta_key = "rope_theta";
  double theta = 10000.0;         ///< of a class without a default
  double unscaled_partial = 0.0;  ///< share of unscaled frequencies without one; 0: none
  const char* partial_key = "partial_rotary_factor";  ///< empty: not read outside rope_parameters
  const char* rotary_dim_key = "";  ///< the key that has partial_rotary_factor * head_dim, or none
  const char* scalings = "";        ///< the scalings that the model knows; empty: all
  std::span<const RotaryLayer> layers = {};
  const char* layers_key = "";   ///< the key that names further layer types, or none
  bool merges = false;           ///< whether layer types that rope_parameters lacks are filled in
  bool only_layers = false;      ///< whether rope_parameters may have only layer types
  bool lists = false;            ///< whether base and share are lists in the order of layer_types
  bool reads_partial = false;    ///< whether unscaled frequencies read the partial factor too
  bool unscaled_layers = false;  ///< whether layers outside rope_scaling_layers are not scaled
  bool longrope_names = false;   ///< whether `su` and `yarn` mean longrope
  bool ignores_rope_parameters = false;  ///< whether only `rope_theta` is read
  bool ignores_rope_scaling = false;
  bool needs_head_dim = false;  ///< whether a head_dim of null or 0 is an error
  int64_t merge = -1;           ///< Grid::merge of a preset with blocks; -1: the configuration's
  bool whole_head = false;      ///< whether patches rotate all channels of a head
};

/// The structures of several model types, and those with layer types.
namespace rope {

// clang-format off
inline constexpr RotaryStructure kLatentAttention = {.head_dim_key = "qk_rope_head_dim"};
inline constexpr RotaryStructure kMistral4 = {.head_dim_key = "",
    .rope_dim_key = "qk_rope_head_dim", .more_key = "qk_nope_head_dim"};
inline constexpr RotaryStructure kGptJ = {.head_dim_key = "rotary_dim",
    .ignores_rope_parameters = true, .needs_head_dim = true};

// Of patches of images and frames of sound.
inline constexpr RotaryStructure kPatches = {.scalings = "default axial"};
inline constexpr RotaryStructure kNoParameters = {.head_dim_key = "", .theta_key = "",
    .ignores_rope_parameters = true};
inline constexpr RotaryStructure kClvp = {.head_dim_key = "", .divisor = 2, .least = 32,
    .hidden_key = "projection_dim", .theta_key = "", .ignores_rope_parameters = true};
inline constexpr RotaryStructure kLightGlue = {.head_dim_key = "", .hidden_key = "descriptor_dim",
    .ignores_rope_parameters = true};
inline constexpr RotaryStructure kMemoryAttention = {.head_dim_key = "",
    .divisor_key = "memory_attention_downsample_rate", .hidden_key = "memory_attention_hidden_size",
    .heads_key = "memory_attention_num_attention_heads", .scalings = "default axial"};
inline constexpr RotaryStructure kWav2Vec2 = {.head_dim_key = "",
    .theta_key = "rotary_embedding_base", .ignores_rope_parameters = true};
inline constexpr RotaryStructure kSeamlessM4T = {.head_dim_key = "",
    .heads_key = "speech_encoder_attention_heads", .theta_key = "rotary_embedding_base",
    .ignores_rope_parameters = true};

// With several layer types.
inline constexpr RotaryLayer kCompassLayers[] = {
    {.layer_type = "full_attention"}, {.layer_type = "sliding_attention"}};
inline constexpr RotaryStructure kCompass = {.head_dim_key = "", .layers = kCompassLayers};

inline constexpr RotaryLayer kDeepseekV4Layers[] = {
    {.layer_type = "main", .theta_key = "rope_theta", .partial_key = "partial_rotary_factor"},
    {.layer_type = "compress", .theta_key = "compress_rope_theta",
     .partial_key = "partial_rotary_factor", .shared = SharedParameters::Scaling,
     .yarn_attention_factor = 1.0}};
inline constexpr RotaryStructure kDeepseekV4 = {.layers = kDeepseekV4Layers};

inline constexpr RotaryLayer kDots3NoteLayers[] = {
    {.layer_type = "indexed_attention", .theta_key = "rope_theta", .shared = SharedParameters::All},
    {.layer_type = "sliding_attention", .theta_key = "swa_rope_theta",
     .shared = SharedParameters::All}};
inline constexpr RotaryStructure kDots3Note = {.layers = kDots3NoteLayers, .reads_partial = true};

inline constexpr RotaryLayer kGemma3Layers[] = {
    {.layer_type = "sliding_attention", .theta_key = "rope_local_base_freq"},
    {.layer_type = "full_attention", .theta_key = "rope_theta",
     .partial_key = "partial_rotary_factor", .shared = SharedParameters::Override}};
inline constexpr RotaryStructure kGemma3 = {.layers = kGemma3Layers, .merges = true};

inline constexpr RotaryStructure kGemma4 = {.global_head_dim = 512};
inline constexpr RotaryLayer kDiffusionGemmaLayers[] = {
    {.layer_type = "sliding_attention", .partial_key = "partial_rotary_factor"}};
inline constexpr RotaryStructure kDiffusionGemma = {.global_head_dim = 512,
    .layers = kDiffusionGemmaLayers, .reads_partial = true};

inline constexpr RotaryLayer kModernBertLayers[] = {
    {.layer_type = "sliding_attention", .theta_key = "local_rope_theta",
     .partial_key = "partial_rotary_factor", .shared = SharedParameters::Override},
    {.layer_type = "full_attention", .theta_key = "global_rope_theta",
     .partial_key = "partial_rotary_factor", .shared = SharedParameters::Override}};
inline constexpr RotaryStructure kModernBert = {.layers = kModernBertLayers, .merges = true,
    .only_layers = true};

inline constexpr RotaryLayer kNeoMmeLayers[] = {
    {.layer_type = "full_attention", .theta_key = "rope_theta"},
    {.layer_type = "sliding_attention", .theta_key = "rope_theta"}};
inline constexpr RotaryStructure kNeoMme = {.layers = kNeoMmeLayers, .merges = true,
    .only_layers = true};

inline constexpr RotaryLayer kStep3p5Layers[] = {{.layer_type = "full_attention",
    .theta_key = "rope_theta", .shared = SharedParameters::Override}};
inline constexpr RotaryLayer kUltraBertLayers[] = {
    {.layer_type = "full_attention", .theta_key = "rope_theta"},
    {.layer_type = "sliding_attention", .theta_key = "rope_theta"}};
inline constexpr RotaryStructure kUltraBert = {.layers = kUltraBertLayers, .lists = true};
inline constexpr RotaryStructure kStep3p5 = {.layers = kStep3p5Layers, .layers_key = "layer_types",
    .merges = true, .lists = true};
inline constexpr RotaryLayer kOlmo3Layers[] = {{.layer_type = "full_attention",
    .theta_key = "rope_theta", .partial_key = "partial_rotary_factor",
    .shared = SharedParameters::Override}};
inline constexpr RotaryStructure kOlmo3 = {.layers = kOlmo3Layers, .merges = true};
// clang-format on

}  // namespace rope
}  // namespace posenc
