#include "models/save/same_stages.h"

#include <string>

#include "core/fields.h"

POSENC_MEMBERS(posenc::sentence::Pooling, modes, include_prompt)
POSENC_MEMBERS(posenc::sentence::Dense, in_features, out_features, bias, activation, use_residual,
               input, output)
POSENC_MEMBERS(posenc::sentence::Normalize, input, output)
POSENC_MEMBERS(posenc::sentence::LayerNorm, dimension)
POSENC_MEMBERS(posenc::sentence::Dropout, p)
POSENC_MEMBERS(posenc::sentence::WeightedLayerPooling, num_hidden_layers, layer_start)
POSENC_MEMBERS(posenc::sentence::WordWeights, vocab_size)
POSENC_MEMBERS(posenc::sentence::CNN, in_embedding_dimension, out_channels, kernel_sizes,
               stride_sizes)

namespace posenc {

bool are_same(const sentence::Stage& a, const sentence::Stage& b) {
  std::string where;
  return !fields::differ(a, b, where);
}

}  // namespace posenc
