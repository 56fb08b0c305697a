// posenc-budget: one class, with and without tensors
//
// The tensors and errors of Tokenizer. What the ids are, the Python tests compare with the package.
#include "posenc/tokenizers/tensors.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/text/generation.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/c_guard.h"

namespace posenc::testing {
namespace {

using tokenizer::Padding;
using tokenizer::Side;
using tokenizer::Truncation;

// [CLS] text [SEP], words of one letter, and the given blocks.
std::string word_file(const std::string& padding, const std::string& truncation) {
  return R"({"version": "1.0", "padding": )" + padding + R"(, "truncation": )" + truncation + R"(,
    "added_tokens": [{"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null,
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "model": {"type": "WordLevel", "unk_token": "[UNK]",
              "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "b": 5, "c": 6, "d": 7}}})";
}

const char* const kPadding =
    R"({"strategy": "BatchLongest", "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        "pad_to_multiple_of": null})";

class TokenizerTensors : public ::testing::Test {
 protected:
  ~TokenizerTensors() override { std::filesystem::remove(path_); }

  Tokenizer tokenizer(const std::string& padding = kPadding,
                      const std::string& truncation = "null") {
    std::ofstream(path_) << word_file(padding, truncation);
    return Tokenizer::from_file(path_);
  }
  // The same with U+FFFD as the token 7.
  Tokenizer tokenizer_of_replacement() {
    std::string file = word_file(kPadding, "null");
    file.replace(file.find("\"d\": 7"), 6, "\"\uFFFD\": 7");
    std::ofstream(path_) << file;
    return Tokenizer::from_file(path_);
  }
  static std::string message_of(const c10::Error& error) { return error.what_without_backtrace(); }
  static std::string message_of(const posenc::Error& error) { return error.what(); }
  // The message of the error that `call` throws.
  template <typename Error, typename Call>
  static std::string error_of(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      return message_of(error);
    }
    return "no error";
  }

  std::string path_ = ::testing::TempDir() + "posenc_tokenizer_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

at::Tensor rows(const std::vector<std::vector<int64_t>>& values) {
  std::vector<int64_t> all;
  for (const auto& row : values) all.insert(all.end(), row.begin(), row.end());
  return at::tensor(all, at::kLong).view({static_cast<int64_t>(values.size()), -1});
}

TEST_F(TokenizerTensors, HavePlacesInBytesToo) {
  const std::string text = "ä b 日本 c", second = "ö d";
  using Offsets = std::vector<std::pair<int64_t, int64_t>>;
  const Encoding one = tokenizer().encode_one(text).front();
  EXPECT_EQ(one.offsets, (Offsets{{0, 0}, {0, 1}, {2, 3}, {4, 6}, {7, 8}, {0, 0}}));
  EXPECT_EQ(one.byte_offsets, (Offsets{{0, 0}, {0, 2}, {3, 4}, {5, 11}, {12, 13}, {0, 0}}));
  const Encoding both = tokenizer().encode_one(text, second).front();
  EXPECT_EQ(both.byte_offsets,
            (Offsets{{0, 0}, {0, 2}, {3, 4}, {5, 11}, {12, 13}, {0, 0}, {0, 2}, {3, 4}, {0, 0}}));
  EXPECT_TRUE(tokenizer().encode_one("").front().offsets.size() == 2);
}

TEST_F(TokenizerTensors, PadToTheLongest) {
  const TokenBatch batch = tokenizer().encode({"a b C", "d"}, TokenizerOptions().offsets(true));
  EXPECT_TRUE(at::equal(batch.input_ids, rows({{2, 4, 5, 6, 3}, {2, 7, 3, 0, 0}})));
  EXPECT_TRUE(at::equal(batch.attention_mask, rows({{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}})));
  EXPECT_TRUE(at::equal(batch.token_type_ids, rows({{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}})));
  EXPECT_TRUE(at::equal(batch.row_texts, at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.offsets[0], rows({{0, 0}, {0, 1}, {2, 3}, {4, 5}, {0, 0}})));
  EXPECT_TRUE(at::equal(batch.offsets[1], rows({{0, 0}, {0, 1}, {0, 0}, {0, 0}, {0, 0}})));
}

TEST_F(TokenizerTensors, PadToAMultipleAndALengthAtEachSide) {
  const Tokenizer made = tokenizer();
  const auto options = TokenizerOptions().pad_to_multiple_of(4).padding_side(Side::Left);
  EXPECT_TRUE(at::equal(made.encode({"a"}, options).input_ids, rows({{0, 2, 4, 3}})));
  const auto length =
      TokenizerOptions().padding(Padding::Length).max_length(5).pad_to_multiple_of(4);
  EXPECT_TRUE(at::equal(made.encode({"a"}, length).input_ids, rows({{2, 4, 3, 0, 0, 0, 0, 0}})));
}

TEST_F(TokenizerTensors, PairsHaveTypes) {
  const TokenBatch batch = tokenizer().encode_pairs({{"a", "b c"}, {"d", ""}});
  EXPECT_TRUE(at::equal(batch.input_ids, rows({{2, 4, 3, 5, 6, 3}, {2, 7, 3, 3, 0, 0}})));
  EXPECT_TRUE(at::equal(batch.token_type_ids, rows({{0, 0, 0, 1, 1, 1}, {0, 0, 0, 1, 0, 0}})));
}

TEST_F(TokenizerTensors, OverflowMakesRows) {
  const auto options =
      TokenizerOptions().truncation(Truncation::LongestFirst).max_length(4).overflow(true);
  const TokenBatch batch = tokenizer().encode({"a b c", "d"}, options);
  EXPECT_TRUE(at::equal(batch.input_ids, rows({{2, 4, 5, 3}, {2, 6, 3, 0}, {2, 7, 3, 0}})));
  EXPECT_TRUE(at::equal(batch.row_texts, at::tensor({0, 0, 1}, at::kLong)));
}

TEST_F(TokenizerTensors, TheFilesBlocksCountWhereTheyAreAskedFor) {
  const Tokenizer made = tokenizer(
      R"({"strategy": {"Fixed": 9}, "direction": "Left", "pad_id": 7, "pad_type_id": 1, "pad_token": "d"})",
      R"({"max_length": 3, "strategy": "OnlyFirst", "stride": 0, "direction": "Left"})");
  EXPECT_EQ(made.model_max_length(), 3);
  const TokenBatch cut =
      made.encode({"a b c"}, TokenizerOptions().truncation(Truncation::LongestFirst));
  EXPECT_TRUE(at::equal(cut.input_ids, rows({{2, 6, 3}})));
  const TokenBatch padded = made.encode({"a b c", "a"});
  EXPECT_TRUE(at::equal(padded.input_ids[1], at::tensor({7, 7, 2, 4, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(padded.token_type_ids[1], at::tensor({1, 1, 0, 0, 0}, at::kLong)));
}

TEST_F(TokenizerTensors, ManyTextsAreTheSameAsEachAlone) {
  const Tokenizer made = tokenizer();
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(std::string(1 + i % 7, "abcd"[i % 4]) + " a");
  const TokenBatch batch = made.encode(texts);
  for (int64_t i = 0; i < 300; ++i) {
    const TokenBatch one = made.encode({texts[static_cast<std::size_t>(i)]});
    EXPECT_TRUE(at::equal(batch.input_ids[i].narrow(0, 0, one.input_ids.size(1)), one.input_ids[0]))
        << i;
  }
}

TEST_F(TokenizerTensors, IdsAlone) {
  const Tokenizer made = tokenizer();
  const auto cut = TokenizerOptions().truncation(Truncation::LongestFirst).max_length(4);
  for (const auto& options : {TokenizerOptions(), TokenizerOptions(cut).overflow(true)}) {
    for (const std::optional<std::string_view> pair :
         {std::optional<std::string_view>(), std::optional<std::string_view>("c d")}) {
      EXPECT_EQ(made.encode_ids("a b C", pair, options),
                made.encode_one("a b C", pair, options).front().ids);
    }
  }
}

TEST_F(TokenizerTensors, ATextOf4GiBIsRefused) {
  constexpr std::size_t kBytes = UINT32_MAX;
  // Pages that are not read take no memory.
  void* pages =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const std::string_view text(static_cast<const char*>(pages), kBytes);
  const Tokenizer made = tokenizer();
  const std::string message = error_of<ArgumentError>([&] { made.encode_one("a", text); });
  EXPECT_NE(message.find("[Tokenizer] second text of pair 0: must have less than 4 GiB. Got "
                         "4294967295 bytes"),
            std::string::npos)
      << message;
  munmap(pages, kBytes);
}

TEST_F(TokenizerTensors, DecodeAndLookUp) {
  const Tokenizer made = tokenizer();
  EXPECT_EQ(made.decode(at::tensor({4, 0, 5}, at::kLong)), "a b");
  EXPECT_EQ(made.decode(std::vector<int64_t>{4, 0, 5, 99}, /*skip_special_tokens=*/false),
            "a [PAD] b");
  EXPECT_EQ(made.token_to_id("b"), 5);
  EXPECT_EQ(made.token_to_id("x"), std::nullopt);
  EXPECT_EQ(made.id_to_token(6), "c");
  EXPECT_EQ(made.id_to_token(-1), std::nullopt);
  EXPECT_EQ(made.vocab_size(), 8);
  DecodeStream stream = made.decode_stream();
  EXPECT_EQ(stream.step(4), "a");
  EXPECT_EQ(stream.step(5), " b");
}

// The rest of a character that is incomplete: here a token that is the replacement character
// itself.
TEST_F(TokenizerTensors, AStreamEnds) {
  const Tokenizer made = tokenizer_of_replacement();
  DecodeStream stream = made.decode_stream();
  EXPECT_EQ(stream.end(), "");
  EXPECT_EQ(stream.step(4), "a");
  EXPECT_EQ(stream.step(7), std::nullopt);
  EXPECT_EQ(stream.end(), " \uFFFD");
  EXPECT_EQ(stream.end(), "");
  EXPECT_EQ(stream.step(5), "b") << "a new text";
  std::vector<std::pair<std::string, bool>> pieces;
  const auto on_token = stream_text(made, [&](const GeneratedText& piece) {
    pieces.emplace_back(piece.text, piece.is_last);
    return piece.text != "b";
  });
  using Pieces = std::vector<std::pair<std::string, bool>>;
  on_token({0, 0, 4, -1.0, false});
  on_token({0, 0, 7, -1.0, true});
  EXPECT_EQ(pieces, (Pieces{{"a", false}, {" \uFFFD", true}}));
  pieces.clear();
  EXPECT_FALSE(on_token({1, 0, 5, -1.0, false})) << "the caller ends it";
  EXPECT_EQ(pieces, (Pieces{{"b", false}}));
}

TEST_F(TokenizerTensors, PaddingMayHaveAnyId) {
  const Tokenizer made = tokenizer("null");
  const std::vector<std::string> texts = {"a", "b c"};
  EXPECT_NE(error_of<c10::ValueError>([&] { made.encode(texts); }).find("`pad_id` is not set"),
            std::string::npos);
  const auto batch = made.encode(texts, TokenizerOptions().pad_id(9));
  EXPECT_TRUE(
      at::equal(batch.input_ids, at::tensor({2, 4, 3, 9, 2, 5, 6, 3}, at::kLong).view({2, 4})));
  const auto wide = tokenizer().encode(
      {"a"}, TokenizerOptions().pad_id(8).padding(Padding::Length).pad_length(5));
  EXPECT_TRUE(at::equal(wide.input_ids, at::tensor({2, 4, 3, 8, 8}, at::kLong).view({1, 5})));
  for (const int64_t id : {int64_t{-1}, int64_t{1} << 32}) {
    const auto text =
        error_of<c10::ValueError>([&] { made.encode(texts, TokenizerOptions().pad_id(id)); });
    EXPECT_NE(text.find("`pad_id` must lie in [0, 2^32). Got"), std::string::npos) << text;
  }
}

TEST_F(TokenizerTensors, AFilesOwnOptionsAreThoseOfItsBlocks) {
  const auto made = tokenizer(
      R"({"strategy": {"Fixed": 7}, "direction": "Left", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
          "pad_to_multiple_of": 4})",
      R"({"max_length": 4, "stride": 1, "strategy": "OnlyFirst", "direction": "Left"})");
  const auto batch = made.encode({"a b c d"}, made.own_options());
  EXPECT_TRUE(
      at::equal(batch.input_ids, at::tensor({0, 0, 0, 0, 2, 6, 7, 3}, at::kLong).view({1, 8})));
  EXPECT_TRUE(made.special_token_ids().empty());
}

// The first piece after a prefix goes on with its text.
TEST_F(TokenizerTensors, StreamsContinueThePrefix) {
  const Tokenizer made = tokenizer();
  using Pieces = std::vector<std::string>;
  const auto streamed = [&](std::vector<std::vector<int64_t>> prefixes) {
    Pieces pieces;
    const auto on_text = [&](const GeneratedText& piece) {
      pieces.push_back(piece.text);
      return true;
    };
    const auto on_token =
        stream_text(made, on_text, /*skip_special_tokens=*/true, std::move(prefixes));
    for (const int64_t source : {0, 1, 0}) on_token({source, 0, 5, -1.0});
    return pieces;
  };
  EXPECT_EQ(streamed({}), (Pieces{"b", "b", " b"}));
  EXPECT_EQ(streamed({{4}}), (Pieces{" b", " b", " b"}));
  EXPECT_EQ(streamed({{0}, {0, 4}}), (Pieces{"b", " b", " b"}));
}

// A source without a prefix is refused each time: the first error does not begin its text.
TEST_F(TokenizerTensors, StreamsNeedAPrefixForEachSource) {
  const Tokenizer made = tokenizer();
  const auto on_token = stream_text(made, [](const GeneratedText&) { return true; },
                                    /*skip_special_tokens=*/true, {{4}, {4}});
  for (int time = 0; time < 2; ++time) {
    const std::string text = error_of<c10::ValueError>([&] { on_token({2, 0, 5, -1.0}); });
    EXPECT_NE(text.find("[stream_text] prefixes must have one list, or one for each source. "
                        "Got 2 and a token of source 2"),
              std::string::npos)
        << text;
  }
  EXPECT_TRUE(on_token({1, 0, 5, -1.0}));
}

TEST_F(TokenizerTensors, Refuse) {
  const Tokenizer made = tokenizer();
  const auto refused = [&](const std::vector<std::string>& texts, const TokenizerOptions& options) {
    return error_of<c10::ValueError>([&] { made.encode(texts, options); });
  };
  const auto cut = TokenizerOptions().truncation(Truncation::LongestFirst);
  EXPECT_NE(
      refused({"a", "\xC3("}, {}).find("[Tokenizer] text 1: must be UTF-8. Got another byte at 0"),
      std::string::npos);
  EXPECT_NE(refused({"a"}, TokenizerOptions(cut).max_length(1))
                .find("must have room for the 2 special tokens. Got 1"),
            std::string::npos);
  EXPECT_NE(refused({"a"}, TokenizerOptions(cut)).find("`max_length` must be given for truncation"),
            std::string::npos);
  EXPECT_NE(refused({"a b"}, TokenizerOptions(cut).max_length(3).stride(1))
                .find("`stride` must be less than the 1"),
            std::string::npos);
  EXPECT_NE(refused({"a"}, TokenizerOptions(cut).max_length(3).stride(-1))
                .find("`stride` must not be negative. Got -1"),
            std::string::npos);
  EXPECT_NE(refused({"a", "a b"}, TokenizerOptions().padding(Padding::None))
                .find("must have one number of tokens. Got 3 and 4"),
            std::string::npos);
  EXPECT_NE(
      refused({"a"}, TokenizerOptions().pad_to_multiple_of(0)).find("must be positive. Got 0"),
      std::string::npos);
  EXPECT_NE(refused({}, {}).find("at least one text"), std::string::npos);
  EXPECT_NE(error_of<ArgumentError>([&] { made.decode(std::vector<int64_t>{-1}); }).find("Got -1"),
            std::string::npos);
  const Tokenizer unpadded = tokenizer("null");
  EXPECT_NE(
      error_of<c10::ValueError>([&] { unpadded.encode({"a", "a b"}); }).find("no padding token"),
      std::string::npos);
}

TEST_F(TokenizerTensors, TensorsHaveTheErrorsOfTensors) {
  const Tokenizer made = tokenizer();
  const std::string bad = "\xC3(",
                    rule = "[Tokenizer] text 0: must be UTF-8. Got another byte at 0";
  EXPECT_EQ(error_of<ArgumentError>([&] { made.encode_ids(bad); }), rule);
  EXPECT_EQ(error_of<c10::ValueError>([&] { made.encode({bad}); }), rule);
  EXPECT_EQ(error_of<ArgumentError>([&] { made.tokenizers::Tokenizer::encode({bad}); }), rule);
  EXPECT_NE(error_of<c10::ValueError>([&] {
              made.encode_pairs({{"a", bad}});
            }).find("second text of pair 0: must be UTF-8"),
            std::string::npos);
  EXPECT_EQ(error_of<c10::ValueError>([&] { made.decode(at::tensor({-1}, at::kLong)); }),
            error_of<ArgumentError>([&] { made.decode(std::vector<int64_t>{-1}); }));
}

TEST_F(TokenizerTensors, ABatchIsWrittenToMemory) {
  const tokenizers::Tokenizer made = tokenizer();
  const auto options = TokenizerOptions().offsets(true).tokens(true).padding_side(Side::Left);
  const auto batch = made.encode_pairs({{"a b", "c"}, {"d", ""}}, options);
  ASSERT_EQ(batch.rows(), 2);
  ASSERT_EQ(batch.columns(), 6);
  using Numbers = std::vector<int64_t>;
  Numbers ids(12), mask(12), types(12), special(12), offsets(24), texts(2);
  tokenizers::BatchMemory memory;
  memory.ids = ids.data();
  memory.attention_mask = mask.data();
  memory.type_ids = types.data();
  memory.special_tokens_mask = special.data();
  memory.offsets = offsets.data();
  memory.row_texts = texts.data();
  batch.write(memory);
  EXPECT_EQ(ids, (Numbers{2, 4, 5, 3, 6, 3, 0, 0, 2, 7, 3, 3}));
  EXPECT_EQ(mask, (Numbers{1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(types, (Numbers{0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(special, (Numbers{1, 0, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1}));
  EXPECT_EQ(offsets, (Numbers{0, 0, 0, 1, 2, 3, 0, 0, 0, 1, 0, 0,  //
                              0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(texts, (Numbers{0, 1}));
  EXPECT_EQ(batch.token(0, 1), "a");
  EXPECT_EQ(batch.token(1, 1), "[PAD]");
  EXPECT_EQ(batch.token(1, 3), "d");
  batch.write({});
  const auto plain = made.encode({"a"});
  EXPECT_NE(error_of<ArgumentError>([&] { plain.write(memory); }).find("must be asked for"),
            std::string::npos);
  EXPECT_NE(error_of<ArgumentError>([&] { plain.token(0, 0); }).find("must be asked for"),
            std::string::npos);
  EXPECT_NE(error_of<ArgumentError>([&] { batch.token(2, 0); }).find("Got row 2, column 0"),
            std::string::npos);
}

TEST_F(TokenizerTensors, RowsDoNotDependOnThreads) {
  const Tokenizer made = tokenizer();
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back(std::string(1 + i % 7, "abcd"[i % 4]) + " a");
  const TokenBatch alone = made.encode(texts, TokenizerOptions().threads(1));
  for (const int64_t threads : {2, 3, 64}) {
    const TokenBatch batch = made.encode(texts, TokenizerOptions().threads(threads));
    EXPECT_TRUE(at::equal(batch.input_ids, alone.input_ids));
    EXPECT_TRUE(at::equal(batch.row_texts, alone.row_texts));
  }
  texts[70] = texts[490] = "\xff";
  EXPECT_NE(error_of<c10::ValueError>([&] {
              made.encode(texts, TokenizerOptions().threads(8));
            }).find("text 70: must be UTF-8"),
            std::string::npos);
  EXPECT_NE(error_of<c10::ValueError>([&] {
              made.encode(texts, TokenizerOptions().threads(0));
            }).find("`threads` must be positive. Got 0"),
            std::string::npos);
}

TEST_F(TokenizerTensors, FilesMayBeInMemory) {
  const std::string file = word_file(kPadding, "null");
  const auto made = tokenizers::Tokenizer::from_memory({{"tokenizer.json", file}});
  EXPECT_EQ(made.encode_ids("a b"), (std::vector<int64_t>{2, 4, 5, 3}));
  const std::string config =
      R"({"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"})";
  using Files = std::vector<std::pair<std::string, std::string_view>>;
  const Files files = {{"tokenizer.json", file}, {"tokenizer_config.json", config}};
  const auto folder = tokenizers::Tokenizer::from_memory(files);
  EXPECT_EQ(folder.encode_ids("a b"), (std::vector<int64_t>{2, 4, 5, 3}));
  EXPECT_EQ(folder.special_token_id("pad_token"), 0);
  const auto refused = [&](const Files& bad) {
    return error_of<TokenizerError>([&] { tokenizers::Tokenizer::from_memory(bad); });
  };
  EXPECT_NE(refused({{"tokenizer.json", "{"}}).find("[Tokenizer::from_memory] tokenizer.json: "),
            std::string::npos);
  EXPECT_NE(refused({files[0], files[0]}).find("Got 'tokenizer.json' twice"), std::string::npos);
  EXPECT_NE(refused({files[0], {"config.json", "["}}).find("config.json: "), std::string::npos);
  EXPECT_NE(refused({}).find("[Tokenizer::from_memory] the files in memory: "), std::string::npos);
}

TEST_F(TokenizerTensors, TokensHaveBytes) {
  const Tokenizer made = tokenizer();
  EXPECT_EQ(made.token_bytes(4), " a");
  EXPECT_EQ(made.token_bytes(0), " [PAD]");
  for (const int64_t id : {int64_t{-1}, int64_t{99}, int64_t{1} << 40})
    EXPECT_EQ(made.token_bytes(id), "");
}

// What the C interface makes of an exception that it does not expect. c_cases.c has the others.
TEST(CInterface, EveryExceptionIsAStatus) {
  using text::guarded;
  EXPECT_EQ(guarded([] { throw std::logic_error("a fault"); }), POSENC_INTERNAL);
  EXPECT_STREQ(posenc_last_error(), "a fault");
  EXPECT_EQ(guarded([] { throw 7; }), POSENC_INTERNAL);
  EXPECT_STREQ(posenc_last_error(), "an exception of an unknown type");
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), POSENC_MEMORY);
  EXPECT_STREQ(posenc_last_error(), "out of memory");
  EXPECT_EQ(guarded([] { throw TokenizerError("too much", TokenizerErrorCode::Limit); }),
            POSENC_LIMIT);
  EXPECT_EQ(guarded([] {}), POSENC_OK);
  EXPECT_STREQ(posenc_last_error(), "too much") << "a success keeps it";
}

TEST_F(TokenizerTensors, ErrorsHaveKinds) {
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const TokenizerError& error) {
      return error.in_file("x").in_function("f").code();
    }
    throw std::logic_error("no error");
  };
  using Code = TokenizerErrorCode;
  EXPECT_EQ(code_of([] { Tokenizer::from_file("missing.json"); }), Code::File);
  EXPECT_EQ(code_of([] { Tokenizer::from_folder("missing"); }), Code::File);
  EXPECT_EQ(code_of([&] { tokenizer("7"); }), Code::Format);
}

TEST_F(TokenizerTensors, FilesAreNamedInErrors) {
  const std::string text =
      error_of<TokenizerError>([&] { tokenizer(R"({"strategy": "Longest"})"); });
  EXPECT_NE(text.find("[Tokenizer::from_file] " + path_ + ": padding: `strategy`: must be"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(Got "Longest")"), std::string::npos) << text;
  const std::string missing =
      error_of<TokenizerError>([] { Tokenizer::from_file("missing.json"); });
  EXPECT_NE(missing.find("[Tokenizer::from_file] missing.json: "), std::string::npos) << missing;
}

}  // namespace
}  // namespace posenc::testing
