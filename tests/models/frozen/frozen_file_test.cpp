// A frozen model that is loaded from its file computes what the one that was saved does, bit for
// bit, holds no float32 weights in place of converted ones, and no file that was damaged is loaded.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "base/xxhash64.h"
#include "inference/freezable_models.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/temp_dir.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

std::vector<FreezeOptions> all_dtypes() {
  std::vector<FreezeOptions> all;
  for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8, WeightDtype::BFloat16})
    for (const auto compute : {ComputeDtype::Float32, ComputeDtype::BFloat16})
      all.push_back(FreezeOptions().weights(weights).compute(compute));
  all.push_back(FreezeOptions().weights(WeightDtype::Int8).int8_block(64));
  return all;
}

std::string name_of(const FreezeOptions& options) {
  return std::to_string(static_cast<int>(options.weights())) + " " +
         std::to_string(static_cast<int>(options.compute())) + " " +
         std::to_string(options.int8_block());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Encoder small_encoder() {
  return drawn(Encoder(encoder_options_from_hf(
      R"({"model_type": "bert", "hidden_size": 16, "num_attention_heads": 2,
          "num_hidden_layers": 2, "intermediate_size": 24, "vocab_size": 40,
          "max_position_embeddings": 20})")));
}

torch::Tensor some_ids() { return torch::tensor({{3, 4, 5, 6, 7}, {8, 9, 10, 3, 1}}); }

FreezeOptions int8() { return FreezeOptions().weights(WeightDtype::Int8); }

// The same bits, NaN included.
::testing::AssertionResult same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  const bool same =
      a.sizes() == b.sizes() && std::memcmp(a.contiguous().const_data_ptr(),
                                            b.contiguous().const_data_ptr(), a.nbytes()) == 0;
  return same ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << "other bits";
}

TEST(XXHash64, KnownValues) {  // of the reference implementation, `xxhsum -H1`
  EXPECT_EQ(base::xxhash64(""), 0xEF46DB3751D8E999U);
  EXPECT_EQ(base::xxhash64("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(base::xxhash64("abc"), 0x44BC2CF5AD770999U);
}

TEST(FrozenFile, EachKindHasTheBitsOfTheSavedModelInEachDtype) {
  const TempDir folder;
  auto models = freezable_stacks();
  for (const FreezableModel& model : freezable_models()) models.push_back(model);
  for (const FreezableModel& model : models) {
    for (const FreezeOptions& options : all_dtypes()) {
      SCOPED_TRACE(model.name + " " + name_of(options));
      const auto expected = model.freeze_with(options, "")();
      ASSERT_FALSE(expected.isnan().any().item<bool>());
      const auto loaded = model.freeze_with(options, folder / "frozen.safetensors");
      EXPECT_TRUE(same_bits(loaded(), expected));
    }
  }
}

// Rows of several blocks, the last of them shorter.
TEST(FrozenFile, RowsInBlocksOf8BitsHaveTheBitsOfTheSavedModel) {
  const TempDir folder;
  const auto layer = TransformerLayerOptions(144, 2).d_ff(200);
  const FreezableModel model = of_stack("blocks", TransformerEncoderOptions(layer, 2).norm(true));
  std::vector<torch::Tensor> all;
  for (const int64_t block : {0, 64, 128}) {
    SCOPED_TRACE(block);
    const auto options = int8().int8_block(block);
    const auto expected = model.freeze_with(options, "")();
    EXPECT_TRUE(same_bits(model.freeze_with(options, folder / "file")(), expected));
    for (const auto& other : all) EXPECT_FALSE(same_bits(other, expected));
    all.push_back(expected);
    const auto arrays = load_safetensors(folder / "file").tensors;
    const int64_t rows = (3 * 144 + 15) / 16 * 16,
                  blocks = block == 0 ? 1 : (144 + block - 1) / block;
    EXPECT_EQ(arrays["layers.0.self_attn.in_proj_weight/units"].numel(), rows * blocks);
  }
}

TEST(FrozenFile, ALoadedModelHasNoSourceAndCanBeSavedAgain) {
  const TempDir folder;
  Encoder source = small_encoder();
  save_frozen(freeze(source, int8()), folder / "one");
  const FrozenEncoder loaded = load_frozen_encoder(folder / "one");
  const auto expected = loaded.forward(some_ids()).last_hidden_state;
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : source->parameters()) parameter.add_(1);
  }
  EXPECT_TRUE(same_bits(loaded.forward(some_ids()).last_hidden_state, expected));
  save_frozen(loaded, folder / "two");
  EXPECT_EQ(read_file(folder / "one"), read_file(folder / "two"));
  EXPECT_EQ(loaded.bytes().shared, 0);
  EXPECT_GT(loaded.bytes().own, 0);
}

TEST(FrozenFile, TheNumberOfThreadsIsThatOfTheProcess) {
  const TempDir folder;
  const auto threads = [&](const std::string& name) {
    const auto metadata = load_safetensors(folder / name).metadata;
    return nlohmann::json::parse(metadata.at("posenc.freeze"))["threads"].get<int64_t>();
  };
  save_frozen(freeze(small_encoder(), FreezeOptions().threads(3)), folder / "one");
  EXPECT_EQ(threads("one"), 3);
  save_frozen(load_frozen_encoder(folder / "one", LoadFrozenOptions().threads(2)), folder / "two");
  EXPECT_EQ(threads("two"), 2);
}

TEST(FrozenFile, WeightsThatAreConvertedAreNotInItInFloat32) {
  const TempDir folder;
  const auto options = FreezeOptions(int8()).weights_to_not_convert({"encoder.layers.1.linear1.*"});
  save_frozen(freeze(small_encoder(), options), folder / "file");
  const auto tensors = load_safetensors(folder / "file").tensors;
  EXPECT_TRUE(tensors.contains("encoder.layers.0.linear1.weight/elements"));
  EXPECT_FALSE(tensors.contains("encoder.layers.0.linear1.weight"));
  EXPECT_TRUE(tensors.contains("encoder.layers.1.linear1.weight"));
  EXPECT_FALSE(tensors.contains("encoder.layers.1.linear1.weight/elements"));
  EXPECT_FALSE(tensors.contains("embeddings.word_embeddings.weight"));
}

// A layout that changes, of any array, needs another number of the format, posenc.frozen.
TEST(FrozenFile, TheArraysHaveTheLayoutOfFormat1) {
  const TempDir folder;
  const auto digest = [&](const FreezeOptions& options) {
    TransformerEncoder model(TransformerEncoderOptions(TransformerLayerOptions(24, 2).d_ff(40), 1));
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) {
      const auto numbers = torch::arange(parameter.numel(), torch::kLong) * 37 % 101 - 50;
      parameter.copy_(numbers.view_as(parameter).to(torch::kFloat) / 64);
    }
    save_frozen(freeze(model, options), folder / "file");
    std::string all;
    for (const auto& item : load_safetensors(folder / "file").tensors) {
      all += item.key();
      all.append(static_cast<const char*>(item.value().const_data_ptr()), item.value().nbytes());
    }
    return fmt::format("{:016x}", base::xxhash64(all));
  };
  EXPECT_EQ(digest(int8()), "af27f75645bbda1d");
  EXPECT_EQ(digest(FreezeOptions().weights(WeightDtype::BFloat16)), "8c9adba2738607e9");
  EXPECT_EQ(digest(FreezeOptions().compute(ComputeDtype::BFloat16)), "854057022c43857e");
}

TEST(FrozenFile, ReplacedOrRemovedWhileItIsMapped) {
  const TempDir folder;
  const std::string path = folder / "file";
  save_frozen(freeze(small_encoder(), int8()), path);
  const FrozenEncoder first = load_frozen_encoder(path);
  const auto expected = first.forward(some_ids()).last_hidden_state;
  save_frozen(freeze(small_encoder(), int8()), path);  // of other numbers
  EXPECT_TRUE(same_bits(first.forward(some_ids()).last_hidden_state, expected));
  EXPECT_FALSE(
      same_bits(load_frozen_encoder(path).forward(some_ids()).last_hidden_state, expected));
  fs::remove(path);
  EXPECT_TRUE(same_bits(first.forward(some_ids()).last_hidden_state, expected));
}

TEST(FrozenFile, RefusesModelsThatItsOptionsDoNotDescribe) {
  const TempDir folder;
  const std::string path = folder / "file";
  Encoder model = small_encoder();
  model->encoder->layers->ptr(1)->as<TransformerEncoderLayerImpl>()->norm1->options.eps(0.5);
  EXPECT_ERROR(save_frozen(freeze(model), path), c10::ValueError,
               "Got other parts or options of encoder.layers.1.norm1.eps");
  EXPECT_ERROR(
      save_frozen(freeze(small_encoder(), FreezeOptions().gemm(GemmBackend::Autotune)), path),
      c10::ValueError, "gemm must be Native or ATen");
  const Encoder changed = small_encoder();
  const FrozenEncoder stale = freeze(changed);
  {
    const torch::NoGradGuard no_grad;
    changed->parameters().front().add_(1);
  }
  EXPECT_ERROR(save_frozen(stale, path), c10::Error, "freeze it again");
  const Classifier classifier(
      ClassifierOptions(small_encoder()->options, head::Kind::Sequence, EncoderHeadOptions(16, 3)));
  EXPECT_ERROR(save_frozen(freeze(classifier).encoder(), path), c10::ValueError,
               "the model must be a whole one");
  EXPECT_EQ(folder.entries(), 0U);
}

// --- files that are refused ---------------------------------------------------------------------

class BadFrozenFile : public ::testing::Test {
 protected:
  void SetUp() override {
    save_frozen(freeze(small_encoder(), int8()), path_);
    bytes_ = read_file(path_);
    header_ = 8 + *reinterpret_cast<const uint64_t*>(bytes_.data());
  }

  // The file with other metadata, and digests that fit.
  void write_with(const std::function<void(std::map<std::string, std::string>&)>& change) {
    auto file = load_safetensors(path_);
    change(file.metadata);
    std::string json = bytes_.substr(8, header_ - 8);
    auto parsed = nlohmann::json::parse(json);
    parsed["__metadata__"] = file.metadata;
    parsed["__metadata__"]["posenc.header_digest"] = std::string(16, '0');
    json = parsed.dump();
    json.append((64 - (json.size() + 8) % 64) % 64, ' ');
    uint64_t length = json.size();
    std::string header(reinterpret_cast<const char*>(&length), 8);
    header += json;
    const auto digest = fmt::format("{:016x}", base::xxhash64(header));
    header.replace(header.find(std::string(16, '0')), 16, digest);
    write_file(path_, header + bytes_.substr(header_));
  }

  TempDir folder_;
  const std::string path_ = folder_ / "file";
  std::string bytes_;
  std::size_t header_ = 0;
};

TEST_F(BadFrozenFile, IsNamedWithTheRuleAndTheValue) {
  const auto expect = [&](WeightsErrorCode code, const std::string& text) {
    try {
      load_frozen_encoder(path_);
      ADD_FAILURE() << "loaded, in place of: " << text;
    } catch (const WeightsError& error) {
      EXPECT_EQ(error.code(), code) << error.what_without_backtrace();
      EXPECT_EQ(error.file(), path_);
      EXPECT_EQ(error.function(), "load_frozen_encoder");
      EXPECT_NE(std::string(error.what_without_backtrace()).find(text), std::string::npos)
          << error.what_without_backtrace();
    }
  };
  using Code = WeightsErrorCode;
  using Metadata = std::map<std::string, std::string>;
  const auto set = [&](const char* key, const std::string& value) {
    write_file(path_, bytes_);
    write_with([&](Metadata& metadata) { metadata[key] = value; });
  };
  const auto set_json = [&](const char* key, const std::function<void(nlohmann::json&)>& change) {
    write_file(path_, bytes_);
    write_with([&](Metadata& metadata) {
      auto json = nlohmann::json::parse(metadata[key]);
      change(json);
      metadata[key] = json.dump();
    });
  };
  write_with([](Metadata&) {});
  EXPECT_NO_THROW(load_frozen_encoder(path_));

  write_file(path_, "");
  expect(Code::Truncated, "at least 10 bytes");
  write_file(path_, bytes_.substr(0, header_ / 2));
  expect(Code::Truncated, "the length of its header");
  write_file(path_, bytes_.substr(0, bytes_.size() - 1));
  expect(Code::Truncated, "");
  write_file(path_, bytes_ + "x");
  expect(Code::Corrupt, "");
  std::string changed = bytes_;
  changed.back() ^= 1;
  write_file(path_, changed);
  expect(Code::Corrupt, "its digest is");
  changed = bytes_;
  changed[changed.find("Encoder")] = 'e';
  write_file(path_, changed);
  expect(Code::Corrupt, "the digest of its header is");
  set("posenc.frozen", "2");
  expect(Code::Unsupported, "must have format 1 of frozen models. Got 2, written by posenc 0.");
  set("posenc.kind", "Transformer");
  expect(Code::Unsupported, "must be a frozen Encoder. Got one of kind Transformer");
  // A parser that recurses, or that copies what it read, would end the process.
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  set("posenc.options", R"({"causal": )" + deep + "}");
  expect(Code::LimitExceeded, "no deeper than 64");
  set("posenc.digests", R"({"embeddings.LayerNorm.bias": )" + deep + "}");
  expect(Code::LimitExceeded, "no deeper than 64");
  set("posenc.options", R"({"causal": true, "causal": false})");
  expect(Code::Corrupt, "must have each name once in posenc.options");
  set_json("posenc.options", [](auto& json) { json["encoder"]["num_layers"] = 1'000'000'000; });
  expect(Code::Corrupt, "option num_layers must be at most the number of arrays");
  set_json("posenc.options", [](auto& json) { json["pad_token_id"] = ~uint64_t{0}; });
  expect(Code::Corrupt, "option pad_token_id must be an integer of its type");
  set("posenc.options", "[]");
  expect(Code::Corrupt, "a JSON object as posenc.options");
  set_json("posenc.options", [](auto& json) { json["sparkle"] = 1; });
  expect(Code::Corrupt, "option sparkle must be one of this version");
  set_json("posenc.options", [](auto& json) { json.erase("causal"); });
  expect(Code::Corrupt, "option causal must be given");
  set_json("posenc.options", [](auto& json) { json["pooling"] = "Best"; });
  expect(Code::Corrupt, R"(option pooling must be a name that it has. Got "Best")");
  set_json("posenc.options", [](auto& json) { json["encoder"]["layer"]["d_ff"] = 25; });
  expect(Code::Corrupt, "encoder.layers.0.linear1.");
  set_json("posenc.options",
           [](auto& json) { json["embeddings"]["vocab_size"] = int64_t{1} << 60; });
  expect(Code::Corrupt, "is no frozen model");
  set_json("posenc.options", [](auto& json) { json["encoder"]["num_layers"] = 1; });
  expect(Code::UnexpectedKeys, "'encoder.layers.1.");
  set_json("posenc.options", [](auto& json) { json["encoder"]["num_layers"] = 3; });
  expect(Code::Corrupt, "must have an array encoder.layers.2.");
  set_json("posenc.freeze", [](auto& json) { json["weights"] = "Float32"; });
  expect(Code::MissingKeys, "must be in the file, by the options");
  set_json("posenc.freeze", [](auto& json) { json["gemm"] = "Autotune"; });
  expect(Code::Corrupt, "gemm must be Native or ATen");
  set_json("posenc.freeze", [](auto& json) { json["int8_shape"] = 32; });
  expect(Code::Corrupt, "option int8_shape must be one of this version");
  set_json("posenc.digests", [](auto& json) { json.erase(json.begin()); });
  expect(Code::Corrupt, "its digest is missing");
}

TEST_F(BadFrozenFile, SizesBeyondTheFile) {
  std::string changed = bytes_;
  const uint64_t length = uint64_t{1} << 62;
  std::memcpy(changed.data(), &length, sizeof(length));
  write_file(path_, changed);
  EXPECT_ERROR(load_frozen_encoder(path_), WeightsError, "header of 2 to 100000000 bytes");
  changed = bytes_;
  const auto shape = changed.find("\"shape\":[") + 9;
  changed[shape] = '9';
  write_file(path_, changed);
  EXPECT_THROW(load_frozen_encoder(path_), WeightsError);
}

TEST_F(BadFrozenFile, TheDigestsOfArraysMayBeLeftOut) {
  std::string changed = bytes_;
  changed.back() ^= 1;
  write_file(path_, changed);
  EXPECT_THROW(load_frozen_encoder(path_), WeightsError);
  EXPECT_NO_THROW(load_frozen_encoder(path_, LoadFrozenOptions().check(false)));
}

TEST_F(BadFrozenFile, IsNotBlamedForWhatTheCallerSets) {
  EXPECT_ERROR(load_frozen_encoder(path_, LoadFrozenOptions().threads(-1)), c10::ValueError,
               "[load_frozen_encoder] threads must be positive");
  const auto before = torch::get_default_dtype();
  torch::set_default_dtype(c10::scalarTypeToTypeMeta(torch::kDouble));
  EXPECT_ERROR(load_frozen_encoder(path_), c10::TypeError, "default dtype");
  torch::set_default_dtype(before);
  EXPECT_NO_THROW(load_frozen_encoder(path_));
}

TEST_F(BadFrozenFile, OtherFiles) {
  save_safetensors(path_, load_safetensors(path_).tensors);
  EXPECT_ERROR(load_frozen_encoder(path_), WeightsError, "must be a frozen model");
  EXPECT_ERROR(load_frozen_encoder(folder_ / "none"), WeightsError, "none");
  EXPECT_ERROR(load_frozen_encoder(folder_.path().string()), WeightsError,
               "must hold frozen.safetensors");
}

// No byte that is changed, removed or inserted goes unnoticed, and none ends the process. A header
// with another digit is still JSON.
TEST_F(BadFrozenFile, Mutations) {
  std::mt19937_64 random(5);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 200; ++i) {
    std::string changed = bytes_;
    std::size_t place = below(i % 2 == 0 ? header_ : changed.size());
    switch (below(5)) {
      case 0: changed[place] = static_cast<char>(changed[place] ^ (1 + below(255))); break;
      case 1: changed.erase(place, 1 + below(64)); break;
      case 2: changed.insert(place, 1 + below(64), static_cast<char>(below(256))); break;
      case 3: changed.resize(place); break;
      default:
        place = changed.find_first_of("0123456789", 8 + below(header_ / 2));
        changed[place] = static_cast<char>('0' + (changed[place] - '0' + 1 + below(9)) % 10);
    }
    write_file(path_, changed);
    EXPECT_THROW(load_frozen_encoder(path_), WeightsError) << "mutation " << i << " at " << place;
  }
}

}  // namespace
}  // namespace posenc::testing
