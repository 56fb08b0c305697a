// The value of a strided view, gathered from the file in pieces, against a plain loop over its
// indices.
#include "weights/common/file_view.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "posenc/weights/error.h"
#include "support/seed.h"

namespace posenc::testing {
namespace {

ManifestTensor view(ManifestDtype dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                    int64_t offset = 0) {
  ManifestTensor tensor;
  tensor.name = "x";
  tensor.dtype = dtype;
  tensor.sizes = std::move(sizes);
  tensor.strides = std::move(strides);
  tensor.offset = offset;
  return tensor;
}

std::string noise(std::size_t count) {
  std::mt19937_64 random(testing::seed(5));
  std::string bytes(count, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// The reference path: one index at a time.
std::string one_by_one(const std::string& bytes, const ManifestTensor& tensor) {
  const auto item = static_cast<std::size_t>(item_size(tensor.dtype));
  std::string out;
  std::vector<int64_t> index(tensor.sizes.size(), 0);
  if (io::contiguous_bytes(tensor) == 0) return out;
  for (;;) {
    int64_t at = tensor.offset;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * tensor.strides[i];
    out += bytes.substr(static_cast<std::size_t>(at) * item, item);
    std::size_t i = index.size();
    while (i > 0 && ++index[i - 1] == tensor.sizes[i - 1]) index[--i] = 0;
    if (i == 0) return out;
  }
}

std::string streamed(const std::string& bytes, const ManifestTensor& tensor) {
  const auto file = io::InputFile::of_bytes(bytes);
  std::string out;
  const std::shared_ptr<const io::InputFile> not_owned(std::shared_ptr<void>(), &file);
  const auto view = io::view_of(not_owned, 0, tensor);
  io::stream_tensor(view, tensor.name, [&](const char* data, std::size_t count) {
    EXPECT_LE(count, std::size_t{8} << 20);
    out.append(data, count);
  });
  return out;
}

void expect_gathered(const std::string& bytes, const ManifestTensor& tensor) {
  EXPECT_TRUE(streamed(bytes, tensor) == one_by_one(bytes, tensor));
}

TEST(TensorBytes, EveryKindOfView) {
  const auto bytes = noise(4096);
  const std::vector<ManifestTensor> views = {
      view(ManifestDtype::Float32, {}, {}, 3),
      view(ManifestDtype::Float32, {4, 5}, {5, 1}),
      view(ManifestDtype::Float32, {4, 5}, {5, 1}, 7),
      view(ManifestDtype::Float32, {5, 4}, {1, 5}),
      view(ManifestDtype::Float32, {5, 4}, {1, 0}),
      view(ManifestDtype::Float32, {3, 5, 4}, {0, 0, 0}, 9),
      view(ManifestDtype::Float64, {2, 3, 4}, {12, 1, 3}),
      view(ManifestDtype::UInt8, {7, 1, 9}, {11, 1 << 30, 1}, 5),
      view(ManifestDtype::Complex128, {3, 3}, {4, 2}),
      view(ManifestDtype::BFloat16, {2, 2, 3, 2}, {1, 40, 3, 2}),
      view(ManifestDtype::Int16, {6, 6}, {1, 1}),  // overlapping
      view(ManifestDtype::Int64, {3, 0, 2}, {int64_t{1} << 62, 2, 1}, int64_t{1} << 62),
  };
  for (const auto& tensor : views) expect_gathered(bytes, tensor);
}

// Larger than a piece and than a window, so that both are split, along different axes.
TEST(TensorBytes, LargeViewsAreCut) {
  const auto bytes = noise(std::size_t{24} << 20);
  expect_gathered(bytes, view(ManifestDtype::Float32, {2000, 3000}, {1, 2000}));
  expect_gathered(bytes, view(ManifestDtype::Float32, {3, 1000, 2000}, {1, 3, 3000}));
  expect_gathered(bytes,
                  view(ManifestDtype::Float32, {2, 1000, 3000}, {1, 2, 2000}));  // along the second
  expect_gathered(bytes, view(ManifestDtype::UInt8, {5, 3000000}, {0, 7}, 11));
  expect_gathered(bytes, view(ManifestDtype::Float64, {1500000}, {2}));
  expect_gathered(bytes, view(ManifestDtype::Float32, {40}, {150000}));
  expect_gathered(bytes, view(ManifestDtype::Float32, {6000000}, {1}));
}

TEST(TensorBytes, RandomViews) {
  const auto bytes = noise(std::size_t{1} << 16);
  std::mt19937 random(testing::seed(11));
  for (int round = 0; round < 2000; ++round) {
    auto tensor = view(static_cast<ManifestDtype>(random() % 21), {}, {}, random() % 50);
    int64_t room = static_cast<int64_t>(bytes.size()) / item_size(tensor.dtype) - 51;
    for (auto rank = random() % 5; rank > 0; --rank) {
      const auto size = 1 + static_cast<int64_t>(random() % 6);
      const int64_t stride = random() % 4 == 0 ? 0 : random() % (room / 8 + 1);
      tensor.sizes.push_back(size);
      tensor.strides.push_back(stride);
      room -= (size - 1) * stride;
    }
    expect_gathered(bytes, tensor);
  }
}

template <typename Number>
std::vector<Number> resolved(ManifestDtype dtype, const std::vector<Number>& numbers, bool conj,
                             bool negative) {
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()),
                          numbers.size() * sizeof(Number));
  const auto items = static_cast<int64_t>(bytes.size()) / item_size(dtype);
  auto tensor = view(dtype, {items}, {1});
  tensor.conj = conj;
  tensor.negative = negative;
  std::vector<Number> out(numbers.size());
  const auto whole = streamed(bytes, tensor);
  std::memcpy(out.data(), whole.data(), whole.size());
  return out;
}

TEST(TensorBytes, ConjAndNegAreResolved) {
  using C = std::complex<float>;
  using Z = std::complex<double>;
  const std::vector<C> c = {{1, 2}, {-3, 0}};
  EXPECT_EQ(resolved(ManifestDtype::Complex64, c, true, false),
            (std::vector<C>{{1, -2}, {-3, -0.f}}));
  EXPECT_EQ(resolved(ManifestDtype::Complex64, c, false, true), (std::vector<C>{{-1, -2}, {3, 0}}));
  EXPECT_EQ(resolved(ManifestDtype::Complex64, c, true, true), (std::vector<C>{{-1, 2}, {3, 0}}));
  EXPECT_EQ(resolved(ManifestDtype::Complex128, std::vector<Z>{{1, 2}}, true, false),
            (std::vector<Z>{{1, -2}}));
  EXPECT_EQ(resolved<uint16_t>(ManifestDtype::Complex32, {0x3c00, 0x4000}, true, false),
            (std::vector<uint16_t>{0x3c00, 0xc000}));
  EXPECT_EQ(resolved<float>(ManifestDtype::Float32, {1.5f, -2}, true, true),
            (std::vector<float>{-1.5f, 2}));
  EXPECT_EQ(resolved<double>(ManifestDtype::Float64, {1.5}, false, true),
            std::vector<double>{-1.5});
  EXPECT_EQ(resolved<uint16_t>(ManifestDtype::BFloat16, {0x3f80}, false, true),
            std::vector<uint16_t>{0xbf80});
  EXPECT_EQ(resolved<uint8_t>(ManifestDtype::Float8_e4m3fn, {0x38}, false, true),
            std::vector<uint8_t>{0xb8});
  EXPECT_EQ(resolved<uint8_t>(ManifestDtype::Float8_e5m2fnuz, {0x38, 0, 0x80}, false, true),
            (std::vector<uint8_t>{0xb8, 0, 0x80}));
  EXPECT_EQ(resolved<int8_t>(ManifestDtype::Int8, {5, -128}, false, true),
            (std::vector<int8_t>{-5, -128}));
  EXPECT_EQ(resolved<int64_t>(ManifestDtype::Int64, {5, -7}, false, true),
            (std::vector<int64_t>{-5, 7}));
}

TEST(TensorBytes, Refuses) {
  auto flags = view(ManifestDtype::Bool, {2}, {1});
  flags.negative = true;
  EXPECT_THROW(streamed("\1", flags), WeightsError);
  EXPECT_THROW(
      io::contiguous_bytes(view(ManifestDtype::Float32, {int64_t{1} << 40, 1 << 30}, {0, 0})),
      WeightsError);
  try {
    streamed("123", view(ManifestDtype::Float32, {1}, {1}));
    FAIL() << "nothing was thrown";
  } catch (const WeightsError& error) {  // like a file that has become shorter
    EXPECT_EQ(error.code(), WeightsErrorCode::Truncated);
    EXPECT_EQ(error.tensor(), "x");
  }
}

}  // namespace
}  // namespace posenc::testing
