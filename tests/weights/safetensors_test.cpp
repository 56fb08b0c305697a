#include "posenc/weights/safetensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

struct DtypeCase {
  const char* name;  // in the format
  at::ScalarType type;
};

const std::vector<DtypeCase> kDtypes = {
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"U16", at::kUInt16},
    {"U32", at::kUInt32},
    {"U64", at::kUInt64},
    {"BOOL", at::kBool},
    {"C64", at::kComplexFloat},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E8M0", at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz},
};

// All byte patterns matter, including NaNs, so this draws bytes rather than values.
at::Tensor random_bits(at::IntArrayRef shape, at::ScalarType type) {
  auto tensor = at::empty(shape, type);
  const auto limit = type == at::kBool ? 2 : 256;
  const auto size = static_cast<int64_t>(tensor.nbytes());
  const auto bytes = at::randint(limit, {size}, at::kByte);
  if (size > 0) std::memcpy(tensor.mutable_data_ptr(), bytes.const_data_ptr(), tensor.nbytes());
  return tensor;
}

class SafetensorsDtypes : public ::testing::TestWithParam<DtypeCase> {};

TEST_P(SafetensorsDtypes, RoundTripKeepsEveryBit) {
  const TempDir dir;
  const auto type = GetParam().type;
  StateDict saved;
  saved.insert("matrix", random_bits({3, 5}, type));
  saved.insert("scalar", random_bits({}, type));
  saved.insert("empty", random_bits({0}, type));
  saved.insert("empty_inside", random_bits({2, 0, 3}, type));
  saved.insert("one", random_bits({1, 1}, type));
  save_safetensors(dir / "x.safetensors", saved);

  const auto loaded = load_safetensors(dir / "x.safetensors").tensors;
  ASSERT_EQ(names(loaded), names(saved));
  for (const auto& item : saved) {
    EXPECT_TRUE(identical(loaded[item.key()], item.value())) << item.key();
  }
  const auto dtype = "\"dtype\":\"" + std::string(GetParam().name) + "\"";
  EXPECT_CONTAINS(read_bytes(dir / "x.safetensors").substr(0, 400), dtype);
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsDtypes, ::testing::ValuesIn(kDtypes),
                         [](const auto& info) { return std::string(info.param.name); });

// Two elements of four bits a byte: LibTorch counts pairs, and the format elements.
TEST(Safetensors, WritesAndReadsPairsOfFloat4) {
  const TempDir dir;
  StateDict saved;
  saved.insert("matrix", random_bits({2, 4}, at::kFloat4_e2m1fn_x2));
  saved.insert("empty", random_bits({0, 3}, at::kFloat4_e2m1fn_x2));
  saved.insert("none", random_bits({3, 0}, at::kFloat4_e2m1fn_x2));
  saved.insert("transposed", saved["matrix"].t());
  for (const char* name : {"x.safetensors", "x.pt"}) {
    save_tensors(dir / name, saved);
    const auto loaded = load_tensors(dir / name);
    ASSERT_EQ(names(loaded), names(saved));
    for (const auto& item : saved) {
      EXPECT_TRUE(identical(loaded[item.key()], item.value())) << item.key();
    }
  }
  const auto bytes = read_bytes(dir / "x.safetensors");
  EXPECT_CONTAINS(bytes, R"("matrix":{"dtype":"F4","shape":[2,8],"data_offsets":[0,8]})");
  EXPECT_CONTAINS(bytes, R"("empty":{"dtype":"F4","shape":[0,6],"data_offsets":[8,8]})");
  EXPECT_CONTAINS(bytes, R"("transposed":{"dtype":"F4","shape":[4,4],"data_offsets":[8,16]})");
}

// LibTorch converts it to no other dtype.
TEST(Safetensors, Float4IsNotCast) {
  torch::nn::Module module;
  module.register_buffer("x", at::zeros({2}));
  StateDict tensors;
  tensors.insert("x", random_bits({2}, at::kFloat4_e2m1fn_x2));
  const auto error = error_of([&] { load_state_dict(module, tensors, LoadOptions().cast(true)); });
  EXPECT_EQ(error.code(), WeightsErrorCode::DtypeMismatch);
  EXPECT_CONTAINS(error.what(), "must have dtype float32. Got float4_e2m1fn_x2");
}

// 0.5 is 00 00 00 3f; the header is padded with spaces to a multiple of eight.
const std::string kGoldenHeader =
    R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
    R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";

std::string golden() {
  return crafted(kGoldenHeader + std::string(8 - kGoldenHeader.size() % 8, ' '),
                 std::string("\x00\x00\x00\x3f\x01\x02\xff", 7));
}

TEST(Safetensors, ReadsAFileWrittenByHand) {
  const TempDir dir;
  write_bytes(dir / "x", golden());
  const auto file = load_safetensors(dir / "x");
  EXPECT_EQ(names(file.tensors), (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(identical(file.tensors["a"], at::scalar_tensor(0.5f, at::kFloat)));
  EXPECT_TRUE(identical(file.tensors["b"], at::tensor({1, 2, 255}, at::kByte)));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"k", "v"}}));
}

TEST(Safetensors, WritesTheBytesWrittenByHand) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("b", at::tensor({1, 2, 255}, at::kByte));
  tensors.insert("a", at::scalar_tensor(0.5f, at::kFloat));
  save_safetensors(dir / "x", tensors, {{"k", "v"}});
  EXPECT_EQ(read_bytes(dir / "x"), golden());
}

TEST(Safetensors, NoTensorsIsAFile) {
  const TempDir dir;
  save_safetensors(dir / "x", StateDict());
  EXPECT_EQ(read_bytes(dir / "x"), crafted("{}      "));
  EXPECT_TRUE(load_safetensors(dir / "x").tensors.is_empty());
}

TEST(Safetensors, KeepsTheOrderOfTheNamesAndAlignsTheData) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("z.small", at::ones({3}, at::kByte));
  tensors.insert("y.half", at::ones({3}, at::kHalf));
  tensors.insert("x.wide", at::ones({3}, at::kDouble));
  tensors.insert("a.single", at::ones({3}, at::kFloat));
  save_safetensors(dir / "x", tensors);
  EXPECT_EQ(names(load_safetensors(dir / "x").tensors), names(tensors));
  const auto bytes = read_bytes(dir / "x");
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]) % 8, 0);
  EXPECT_CONTAINS(bytes, R"("x.wide":{"dtype":"F64","shape":[3],"data_offsets":[0,24]})");
  EXPECT_CONTAINS(bytes, R"("a.single":{"dtype":"F32","shape":[3],"data_offsets":[24,36]})");
  EXPECT_CONTAINS(bytes, R"("y.half":{"dtype":"F16","shape":[3],"data_offsets":[36,42]})");
  EXPECT_CONTAINS(bytes, R"("z.small":{"dtype":"U8","shape":[3],"data_offsets":[42,45]})");
}

TEST(Safetensors, ResolvesViews) {
  const TempDir dir;
  const auto base = at::arange(24, at::kFloat).view({4, 6});
  const auto complex = at::complex(base, base + 100);
  StateDict tensors;
  tensors.insert("transposed", base.t());
  tensors.insert("strided", base.slice(1, 1, 6, 2));
  tensors.insert("expanded", base.slice(1, 0, 1).expand({4, 3}));
  tensors.insert("conj", complex.conj());
  tensors.insert("neg", at::imag(complex.conj()));
  tensors.insert("contiguous_neg", at::_neg_view(base));  // contiguous() would not resolve it
  tensors.insert("leaf", base.clone().requires_grad_());
  ASSERT_TRUE(tensors["conj"].is_conj());
  ASSERT_TRUE(tensors["neg"].is_neg());
  ASSERT_TRUE(tensors["contiguous_neg"].is_neg() && tensors["contiguous_neg"].is_contiguous());
  save_safetensors(dir / "x", tensors);
  const auto loaded = load_safetensors(dir / "x").tensors;
  for (const auto& item : tensors) {
    EXPECT_TRUE(at::equal(loaded[item.key()], item.value())) << item.key();
    EXPECT_TRUE(loaded[item.key()].is_contiguous()) << item.key();
    EXPECT_FALSE(loaded[item.key()].requires_grad()) << item.key();
  }
}

TEST(Safetensors, NamesAndMetadataMayHoldAnyText) {
  const TempDir dir;
  const std::map<std::string, std::string> metadata = {
      {"", ""}, {"quote\"\\", "line\nbreak\ttab"}, {"größe", "日本語 🎉"}};
  StateDict tensors;
  tensors.insert("", at::ones({1}));
  tensors.insert("with \"quotes\" and \\", at::ones({2}));
  tensors.insert("日本語", at::ones({3}));
  save_safetensors(dir / "x", tensors, metadata);
  const auto file = load_safetensors(dir / "x");
  EXPECT_EQ(names(file.tensors), names(tensors));
  EXPECT_EQ(file.metadata, metadata);
}

TEST(Safetensors, LoadedTensorsOutliveTheFile) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("a", at::arange(1000));
  save_safetensors(dir / "x", tensors);
  const auto loaded = load_safetensors(dir / "x").tensors;
  std::filesystem::remove(dir / "x");
  loaded["a"].add_(1);
  EXPECT_TRUE(at::equal(loaded["a"], at::arange(1, 1001)));
}

// Tensors that cannot be written are rejected before a file is created.
std::string save_refusal(const TempDir& dir, const std::string& name, const at::Tensor& tensor) {
  StateDict tensors;
  tensors.insert("fine", at::ones({2}));
  tensors.insert(name, tensor);
  const auto message = refusal([&] { save_safetensors(dir / "x.safetensors", tensors); });
  EXPECT_CONTAINS(message, "[save_safetensors] " + (dir / "x.safetensors") + ": ");
  EXPECT_EQ(dir.entries(), 0u);
  return message;
}

TEST(SafetensorsSave, RefusesWhatTheFormatCannotHold) {
  const TempDir dir;
  EXPECT_CONTAINS(save_refusal(dir, "__metadata__", at::ones({1})),
                  "a name that safetensors reserves");
  EXPECT_CONTAINS(save_refusal(dir, "a", at::Tensor()), "tensor 'a' is undefined");
  EXPECT_CONTAINS(save_refusal(dir, "a", at::ones({2}).to_sparse()), "must be dense");
  EXPECT_CONTAINS(save_refusal(dir, "a", at::ones({2}, at::device(at::kMeta))), "meta tensor");
  EXPECT_CONTAINS(save_refusal(dir, "a", at::ones({2}, at::kComplexDouble)),
                  "complex128, which safetensors lacks");
  EXPECT_CONTAINS(save_refusal(dir, "a", at::empty({}, at::kFloat4_e2m1fn_x2)),
                  "must have an axis to be written as safetensors' F4");
  EXPECT_CONTAINS(save_refusal(dir, "a\xff", at::ones({2})), "names and metadata in UTF-8");
  EXPECT_CONTAINS(
      save_refusal(dir, "a", at::quantize_per_tensor(at::ones({2}), 1.0, 0, at::kQInt8)),
      "quantised");
}

TEST(SafetensorsSave, RefusesMetadataThatIsNotUtf8) {
  const TempDir dir;
  const auto message =
      refusal([&] { save_safetensors(dir / "x", StateDict(), {{"key", "\xc3("}}); });
  EXPECT_CONTAINS(message, "names and metadata in UTF-8");
  EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace posenc::testing
