#pragma once

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The distribution that the rows of a token table are drawn from. The row of a padding_idx is
/// zero.
///
/// Positions have a standard deviation of about 0.7. With a scale of sqrt(d_model), or with a table
/// that is also the output layer, StandardNormal makes the positions negligible beside the tokens,
/// or the first logits as large as sqrt(d_model), and training is slow or fails.
enum class EmbeddingInit {
  StandardNormal,  ///< N(0, 1), as in torch.nn.Embedding
  InverseSqrtDim,  ///< N(0, 1 / d_model), as in tensor2tensor and fairseq, scaled and tied or not
};

}  // namespace posenc
