#include "nn/print.h"

namespace posenc {

void print(std::ostream& stream, const Scale& scale) {
  if (scale.is_none()) return;
  stream << ", scale=";
  if (scale.is_sqrt_dim()) {
    stream << "sqrt(d_model)";
  } else {
    stream << scale.factor(0);
  }
}

void print(std::ostream& stream, EmbeddingInit init, EmbeddingInit by_default) {
  if (init == by_default) return;
  const bool standard = init == EmbeddingInit::StandardNormal;
  stream << ", embedding_init=" << (standard ? "StandardNormal" : "InverseSqrtDim");
}

void print(std::ostream& stream, const PositionalEncodingOptions& options) {
  stream << "max_len=" << options.max_len();
  if (options.table_source() == TableSource::Factored) stream << ", table_source=factored";
  if (options.table_source() == TableSource::OnTheFly) stream << ", table_source=on_the_fly";
  if (options.dropout() > 0.0) stream << ", dropout=" << options.dropout();
  if (!options.batch_first()) stream << ", batch_first=false";
  if (options.grow()) stream << ", grow=true";
}

}  // namespace posenc
