#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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
  int64_t global_head_dim = 0;     ///< the default of that, of full attention; 0: head_dim
  const char* hidden_key = "hidden_size";
  const char* heads_key = "num_attention_heads";
  const char* theta_key = "rope_theta";
  double theta = 10000.0;         ///< of a class without a default
  double unscaled_partial = 0.0;  ///< share of unscaled frequencies without one; 0: none
  const char* partial_key = "partial_rotary_factor";  ///< empty: not read outside rope_parameters
  const char* rotary_dim_key = "";  ///< the key that has partial_rotary_factor * head_dim, or none
  const char* scalings = "";        ///< the scalings that the model knows; empty: all
  std::vector<RotaryLayer> layers = {};
  const char* layers_key = "";   ///< the key that names further layer types, or none
  bool merges = false;           ///< whether layer types that rope_parameters lacks are filled in
  bool only_layers = false;      ///< whether rope_parameters may have only layer types
  bool lists = false;            ///< whether base and share are lists in the order of layer_types
  bool reads_partial = false;    ///< whether unscaled frequencies read the partial factor too
  bool unscaled_layers = false;  ///< whether layers outside rope_scaling_layers are not scaled
  bool longrope_names = false;   ///< whether `su` and `yarn` mean longrope
  bool ignores_rope_parameters = false;  ///< whether only `rope_theta` is read
  bool ignores_rope_scaling = false;
  bool needs_head_dim = false;  ///< whether a head_dim of null or 0 is refused
  int64_t merge = -1;           ///< Grid::merge of a preset with blocks; -1: the configuration's
  bool whole_head = false;      ///< whether patches rotate all channels of a head
};

/// A model type of transformers.
struct RotaryModelRow {
  const char* model_type;
  const char* preset;
  RotaryStructure structure = {};
};

/// All of them, sorted by preset, then by model type.
const std::vector<RotaryModelRow>& rotary_model_table();

/// The row of `model_type`, or null.
const RotaryModelRow* find_rotary_model(std::string_view model_type);

}  // namespace posenc
