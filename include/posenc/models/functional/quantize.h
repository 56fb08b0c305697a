#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// How the entries of stored vectors are kept: `precision` of sentence-transformers.
enum class EmbeddingPrecision {
  Int8,     ///< UInt8's levels - 128
  UInt8,    ///< 256 levels between the least and the largest number of each column
  Binary,   ///< UBinary's bytes - 128, as int8
  UBinary,  ///< a bit for each entry, whether it is positive
};

/// Vectors in 8 bits or 1 bit an entry.
struct QuantizedEmbeddings {
  at::Tensor embeddings;  ///< (N, D), or of bits (N, ceil(D / 8)); int8 or uint8
  at::Tensor ranges;      ///< (2, D) float32, those of the levels; undefined for bits
};

/// Stores vectors in 8 bits or 1 bit an entry.
///
/// With start = ranges[0] and step = (ranges[1] - ranges[0]) / 255, or 1 where that is 0, a level
/// is clip(floor((x - start) / step), 0, 255), in float32. Bits are those of pack_bits().
///
/// x: (N, D) floating-point, ranges: (2, D). Without ranges they are embedding_ranges(x). Queries
/// need those of the documents: with their own, a level would stand for another number.
///
/// ```cpp
/// torch::Tensor documents = torch::randn({100, 384}), queries = torch::randn({2, 384});
/// const auto stored = posenc::functional::quantize_embeddings(
///     documents, posenc::functional::EmbeddingPrecision::Int8);
/// const auto asked = posenc::functional::quantize_embeddings(
///     queries, posenc::functional::EmbeddingPrecision::Int8, stored.ranges);
/// ```
///
/// Errors: c10::TypeError for an x that is not floating-point; c10::ValueError for an x or ranges
/// of another shape, numbers that are not finite, ranges for bits, and a single vector without
/// ranges.
///
/// Source: sentence-transformers 6.2, `quantize_embeddings`.
QuantizedEmbeddings quantize_embeddings(const at::Tensor& x, EmbeddingPrecision precision,
                                        const at::Tensor& ranges = {});

/// The least and the largest number of each column of at least two vectors.
///
/// x: (N, D)  ->  (2, D) float32.
///
/// Errors: those of quantize_embeddings().
at::Tensor embedding_ranges(const at::Tensor& x);

/// Whether each entry is positive, a bit for each, as numpy.packbits(x > 0, axis=-1): the first
/// entry of a byte is its highest bit, and the last byte is filled with zeros.
///
/// x: (N, D) floating-point  ->  (N, ceil(D / 8)) uint8.
///
/// Errors: c10::TypeError for an x that is not floating-point; c10::ValueError for another rank.
at::Tensor pack_bits(const at::Tensor& x);

/// The number of bits in which each row of `a` and each row of `b` differ: the smaller, the more
/// similar.
///
/// a: (N, B), b: (M, B), both uint8 or both int8  ->  (N, M) int32.
///
/// Errors: c10::TypeError for other dtypes; c10::ValueError for other ranks and widths that differ.
at::Tensor hamming_distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace functional
}  // namespace posenc
