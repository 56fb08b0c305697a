#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace posenc {

/// Which parameters a layer takes from those that are not grouped by layer type: from
/// `rope_scaling`, or directly from rope_parameters.
enum class FlatUse : uint8_t {
  None,
  Over,     ///< `rope_scaling` only, which overrides the layer's own
  Scaling,  ///< the scaling; base and share stay the layer's
  All,      ///< everything
};

/// The defaults for the rotary embedding of one kind of layer, for models that have several.
struct RotaryLayerDefaults {
  const char* layer_type;
  double theta;
  double partial = 0.0;  ///< partial_rotary_factor; 0: none
  const char* rope_type = "default";
  const char* theta_key = "";    ///< the key outside rope_parameters for its base, or none
  const char* partial_key = "";  ///< the key outside rope_parameters for its share, or none
  FlatUse flat = FlatUse::None;
  double yarn_attention_factor = 0.0;  ///< of flat parameters of type yarn without one; 0: none
};

/// The defaults of a model's configuration class, and its names of the keys where they are neither
/// the usual ones nor its aliases of these.
struct RotaryDefaults {
  double theta = 10000.0;
  double partial = 0.0;           ///< partial_rotary_factor; 0: none
  int64_t hidden = 0, heads = 0;  ///< hidden_size, num_attention_heads
  int64_t head_dim = 0;           ///< 0: hidden / heads
  int64_t head_factor = 1;  ///< what hidden / heads is multiplied by where head_dim_key is absent
  const char* head_dim_key = "head_dim";  ///< empty: always hidden / heads
  const char* rope_dim_key = "";  ///< where head_dim_key is absent, its part that rotates, or none
  const char* more_key = "";      ///< the other part, or none; the share that rotates follows
  int64_t more = 0;               ///< the default of that
  int64_t max_position = 0;       ///< max_position_embeddings
  int64_t original_max_position = 0;  ///< outside rope_parameters; 0: none
  const char* divisor_key = "";       ///< a further divisor of hidden / heads, or none
  int64_t divisor = 1;                ///< the default of that
  int64_t least = 1;                  ///< hidden / heads is at least this
  const char* hidden_key = "hidden_size";
  const char* heads_key = "num_attention_heads";
  const char* theta_key = "rope_theta";
  const char* partial_key = "partial_rotary_factor";  ///< empty: not read outside rope_parameters
  const char* rotary_dim_key = "";  ///< the key that has partial_rotary_factor * head_dim, or none
  const char* rope_parameters = "{}";            ///< JSON: of a configuration that has none
  const char* scalings = "";                     ///< the scalings that the model knows; empty: all
  std::vector<RotaryLayerDefaults> layers = {};  ///< not empty: rope_parameters by layer type
  const char* layers_key = "";   ///< the key that names further layer types, or none
  bool merges = false;           ///< whether layer types that rope_parameters lacks are filled in
  bool only_layers = false;      ///< whether rope_parameters may have only layer types
  bool lists = false;            ///< whether base and share are lists in the order of layer_types
  int64_t global_head_dim = 0;   ///< head_dim of full attention; 0: as all
  bool reads_partial = false;    ///< whether unscaled frequencies read the partial factor too
  bool unscaled_layers = false;  ///< whether layers outside rope_scaling_layers are not scaled
  bool longrope_names = false;   ///< whether `su` and `yarn` mean longrope
  bool interleave_key = false;   ///< whether `rope_interleave` false means halves
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
  RotaryDefaults defaults;
};

/// All of them, sorted by preset, then by model type.
const std::vector<RotaryModelRow>& rotary_model_table();

/// The row of `model_type`, or null.
const RotaryModelRow* find_rotary_model(std::string_view model_type);

}  // namespace posenc
