#include "cli/stored_vectors.h"

#include <ATen/TensorOperators.h>

#include "cli/error.h"
#include "cli/weights.h"
#include "posenc/models/functional/quantize.h"
#include "posenc/models/functional/similarity.h"

namespace posenc::cli {
namespace {

using VectorKind = StoredVectors::Kind;

// The tensor, of this dtype and with that number of axes.
at::Tensor checked(const StateDict& tensors, const std::string& path, const char* name,
                   at::ScalarType dtype, int64_t axes) {
  if (!tensors.contains(name)) {
    fail("{} must have a tensor `{}`; it contains {}", path, name, described(tensors));
  }
  const at::Tensor tensor = tensors[name];
  if (tensor.scalar_type() != dtype || tensor.dim() != axes) {
    fail("{}: `{}` must be {} with {} {}. Got {} {}", path, name,
         dtype == at::kLong ? "int64" : "float32", axes, axes == 1 ? "axis" : "axes",
         dtype_text(tensor), shape_of(tensor));
  }
  return tensor;
}

StoredVectors sparse_vectors(const StateDict& tensors, const std::string& path) {
  refuse_unknown(tensors, path, "a file of sparse vectors",
                 {"values", "crow_indices", "col_indices", "size"});
  const auto indices = [&](const char* name) { return checked(tensors, path, name, at::kLong, 1); };
  SparseVectors sparse = {indices("crow_indices"), indices("col_indices"),
                          checked(tensors, path, "values", at::kFloat, 1)};
  const at::Tensor size = indices("size");
  if (size.numel() != 2 || size[0].item<int64_t>() != sparse.size() || size[1].item<int64_t>() < 0)
    fail("{}: `size` must be the number of vectors, {}, and their width", path, sparse.size());
  sparse.width = size[1].item<int64_t>();
  return {.kind = VectorKind::Sparse, .sparse = std::move(sparse)};
}

at::Tensor lengths_in(const StateDict& tensors, const std::string& path, int64_t rows) {
  const at::Tensor lengths = checked(tensors, path, "lengths", at::kLong, 1);
  if (lengths.lt(0).any().item<bool>()) fail("{}: `lengths` must not be negative", path);
  const auto sum = lengths.sum().item<int64_t>();
  if (sum != rows) {
    fail("{}: `lengths` must add up to the number of rows of `embeddings`, {}. Got {}", path, rows,
         sum);
  }
  return lengths;
}

at::Tensor equal_bits(const at::Tensor& a, const at::Tensor& b) {
  return functional::hamming_distance(a, b).neg().to(at::kFloat);
}

using OfRows = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
using OfSparse = at::Tensor (*)(const SparseVectors&, const SparseVectors&);
using OfTokens = at::Tensor (*)(const MultiVectors&, const MultiVectors&);

at::Tensor maxsim(const MultiVectors& a, const MultiVectors& b) { return functional::maxsim(a, b); }
at::Tensor mean_maxsim(const MultiVectors& a, const MultiVectors& b) {
  return functional::maxsim(a, b, functional::MaxSimOptions().mean(true));
}

// A similarity, by what it is of the kinds that it is for.
struct Similarity {
  const char* name;
  OfRows dense = nullptr;
  OfSparse sparse = nullptr;
  OfRows bits = nullptr;
  OfTokens tokens = nullptr;
};
constexpr Similarity kSimilarities[] = {
    {"cosine", functional::cosine_similarity, functional::cosine_similarity},
    {"dot", functional::dot_product, functional::dot_product},
    {"euclidean", functional::euclidean_similarity, functional::euclidean_similarity},
    {"manhattan", functional::manhattan_similarity, functional::manhattan_similarity},
    {"hamming", nullptr, nullptr, equal_bits},
    {"maxsim", nullptr, nullptr, nullptr, maxsim},
    {"meanmaxsim", nullptr, nullptr, nullptr, mean_maxsim},
};

struct KindRow {
  VectorKind kind;
  const char *what, *usual;  // the similarity
};
constexpr KindRow kKinds[] = {{VectorKind::Dense, "a vector for each text", "cosine"},
                              {VectorKind::Bits, "bits", "hamming"},
                              {VectorKind::Sparse, "sparse vectors", "dot"},
                              {VectorKind::PerTokens, "vectors of tokens", "maxsim"}};

const KindRow& kind_row(VectorKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::vector<std::string> all_similarity_names() {
  std::vector<std::string> names;
  for (const Similarity& one : kSimilarities) names.emplace_back(one.name);
  return names;
}

const Similarity& similarity_named(const std::string& name) {
  for (const Similarity& one : kSimilarities)
    if (name == one.name) return one;
  fail("the similarity must be a known one. Got {}{}", shown(name),
       suggestion(name, all_similarity_names()));
}

}  // namespace

std::string similarity_names() { return listed(all_similarity_names()); }

void check_similarity(const std::string& name) {
  if (!name.empty()) similarity_named(name);
}

at::Tensor similarity_scores(const std::string& name, const StoredVectors& a,
                             const StoredVectors& b) {
  const Similarity& similarity = similarity_named(name.empty() ? kind_row(a.kind).usual : name);
  if (a.kind != b.kind)
    fail("the vectors must be of one kind. Got {} and {}", kind_row(a.kind).what,
         kind_row(b.kind).what);
  if (a.width() != b.width())
    fail("the vectors must have one width. Got {} and {}", a.width(), b.width());
  if (a.kind == VectorKind::Dense && similarity.dense != nullptr)
    return similarity.dense(a.rows, b.rows);
  if (a.kind == VectorKind::Bits && similarity.bits != nullptr)
    return similarity.bits(a.rows, b.rows);
  if (a.kind == VectorKind::Sparse && similarity.sparse != nullptr)
    return similarity.sparse(a.sparse, b.sparse);
  if (a.kind == VectorKind::PerTokens && similarity.tokens != nullptr)
    return similarity.tokens({a.rows, a.lengths}, {b.rows, b.lengths});
  fail("{} is not a similarity of {}", similarity.name, kind_row(a.kind).what);
}

int64_t StoredVectors::width() const {
  return kind == VectorKind::Sparse ? sparse.width : rows.size(1);
}

StoredVectors read_stored_vectors(const std::string& path) {
  const StateDict tensors = read_tensors(path, {});
  if (tensors.contains("values")) return sparse_vectors(tensors, path);
  refuse_unknown(tensors, path, "a file of vectors", {"embeddings", "ranges", "lengths"});
  if (!tensors.contains("embeddings")) {
    fail("{} must have `embeddings`, or `values` and the indices of sparse vectors; it contains {}",
         path, described(tensors));
  }
  StoredVectors stored = {.kind = VectorKind::Dense, .rows = tensors["embeddings"]};
  if (stored.rows.dim() != 2)
    fail("{}: `embeddings` must be (N, D). Got {}", path, shape_of(stored.rows));
  if (tensors.contains("lengths")) {
    stored.kind = VectorKind::PerTokens;
    stored.lengths = lengths_in(tensors, path, stored.rows.size(0));
  }
  const at::ScalarType dtype = stored.rows.scalar_type();
  if (at::isFloatingType(dtype) || tensors.contains("ranges")) {
    stored.rows = stored.rows.to(at::kFloat);
  } else if (dtype != at::kByte && dtype != at::kChar) {
    fail("{}: `embeddings` must be float32, int8 or uint8. Got {}", path, dtype_text(stored.rows));
  } else if (stored.kind == VectorKind::PerTokens) {
    fail("{}: vectors of tokens must not be bits, of which there is no maxsim", path);
  } else {
    stored.kind = VectorKind::Bits;
  }
  return stored;
}

}  // namespace posenc::cli
