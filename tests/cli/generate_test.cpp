// posenc generate: what it refuses, and how its ways of running agree.
// tests/differential/generation.py compares it with transformers.
#include <torch/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "models/marian/live.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

class Generate : public InFolder {
 protected:
  Result generate(const StateDict& inputs, std::vector<std::string> more = {},
                  const std::string& folder = marian_path("shared")) const {
    std::vector<std::string> command = {"generate", folder,     "--in", safetensors("in", inputs),
                                        "--out",    file("out")};
    command.insert(command.end(), more.begin(), more.end());
    return posenc(command);
  }
  at::Tensor found(const StateDict& inputs, const std::vector<std::string>& more,
                   const char* name = "sequences") const {
    const auto result = generate(inputs, more);
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("out")).tensors[name];
  }
  void expect_nothing(const StateDict& inputs, const std::vector<std::string>& more,
                      const std::string& message) const {
    expect_refused(generate(inputs, more), "generate", message);
    EXPECT_FALSE(std::filesystem::exists(file("out"))) << message;
  }

  const at::Tensor ids_ = torch::tensor({{7, 9, 5, 0}, {8, 6, 0, 1}});
  const StateDict in_ = dict({{"input_ids", ids_}});
};

TEST_F(Generate, WritesSequencesAndTheScoresOfBeams) {
  ASSERT_EQ(generate(in_, {"--set", "num_beams=3", "--set", "num_return_sequences=2"}).status, 0);
  const auto beams = load_safetensors(file("out")).tensors;
  EXPECT_EQ(beams["sequences"].size(0), 4);
  EXPECT_EQ(beams["sequences_scores"].sizes(), (torch::IntArrayRef{4}));
  ASSERT_EQ(generate(in_, {"--set", "num_beams=1"}).status, 0);
  EXPECT_EQ(load_safetensors(file("out")).tensors.size(), 1u);
}

TEST_F(Generate, FrozenAndPlainAgree) {
  const std::vector<std::string> set = {"--set", "num_beams=2"};
  const auto frozen = found(in_, set);
  EXPECT_TRUE(torch::equal(frozen, found(in_, {"--set", "num_beams=2", "--plain"})));
  EXPECT_EQ(generate(in_, {"--int8"}).status, 0);
  EXPECT_EQ(generate(in_, {"--int8", "--plain"}).status, 2);
  EXPECT_EQ(generate(in_, {"--int8", "--float32-scores"}).status, 0);
  EXPECT_EQ(generate(in_, {"--float32-scores"}).status, 2) << "without --int8 it has no meaning";
  EXPECT_EQ(generate(in_, {"--int8", "--compute-bfloat16", "--float32-scores"}).status, 2);
  EXPECT_EQ(generate(in_, {"--int8", "--int8-block", "64"}).status, 0);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--int8-block", "64"},
                                                {"--int8", "--int8-block", "32"},
                                                {"--bfloat16", "--int8-block", "64"}})
    EXPECT_EQ(generate(in_, wrong).status, 2) << wrong[0] << " " << wrong[1];
  EXPECT_EQ(generate(in_, {"--bfloat16"}).status, 0);
  EXPECT_EQ(generate(in_, {"--bfloat16", "--plain"}).status, 2);
  EXPECT_EQ(generate(in_, {"--compute-bfloat16", "--int8"}).status, 0);
  EXPECT_EQ(generate(in_, {"--compute-bfloat16", "--plain"}).status, 2);
}

TEST_F(Generate, LogitsOfWhatWasFoundLeadToIt) {
  const auto found_ids = found(in_, {"--set", "num_beams=1", "--set", "bad_words_ids=null", "--set",
                                     "forced_eos_token_id=null", "--set", "max_new_tokens=6"});
  const auto more = dict({{"input_ids", ids_}, {"decoder_input_ids", found_ids}});
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--logits"}, {"--logits", "--plain"}}) {
    const auto best = found(more, flags, "logits").argmax(2);
    EXPECT_EQ(best[0][0].item<int64_t>(), found_ids[0][1].item<int64_t>());
    EXPECT_EQ(best[1][0].item<int64_t>(), found_ids[1][1].item<int64_t>());
  }
}

TEST_F(Generate, RefusesTensors) {
  expect_nothing(dict({{"src", ids_}}), {}, "`src`");
  expect_nothing(dict({{"input_ids", ids_.to(torch::kFloat)}}), {}, "`input_ids` must be int64");
  expect_nothing(dict({{"input_ids", ids_}, {"attention_mask", torch::ones({2, 3}, torch::kLong)}}),
                 {}, "`attention_mask` must have the shape of `input_ids`, (2, 4); it is (2, 3)");
  expect_nothing(dict({{"input_ids", ids_}, {"decoder_input_ids", ids_.narrow(0, 0, 1)}}), {},
                 "`decoder_input_ids` must have the 2 rows of `input_ids`");
  const auto no_columns = dict({{"input_ids", ids_}, {"decoder_input_ids", ids_.narrow(1, 0, 0)}});
  expect_nothing(no_columns, {}, "`decoder_input_ids` must have at least one column; it is (2, 0)");
  expect_nothing(no_columns, {"--logits"}, "`decoder_input_ids` must have at least one column");
  expect_nothing(dict({{"input_ids", ids_}, {"decoder_attention_mask", torch::ones_like(ids_)}}),
                 {}, "`decoder_attention_mask` needs `decoder_input_ids`");
  expect_nothing(dict({{"input_ids", ids_},
                       {"decoder_input_ids", ids_},
                       {"decoder_attention_mask", torch::tensor({{1, 1, 0, 1}, {1, 1, 1, 1}})}}),
                 {}, "row 0 of `decoder_attention_mask` must be zeros and then ones");
  expect_nothing(dict({{"input_ids", ids_ + 100'000}}), {}, "`input_ids` must have ids in [0, ");
  expect_nothing(dict({{"input_ids", ids_ - 6}}), {}, "Got -1 at index [0, 2]");
  const auto many = torch::full({2, 100'000}, 7, torch::kLong);
  expect_nothing(dict({{"input_ids", many}}), {}, "`input_ids` must have at most the model's ");
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{}, {"--logits"}}) {
    expect_nothing(dict({{"input_ids", ids_}, {"decoder_input_ids", ids_ + 100'000}}), flags,
                   "`decoder_input_ids` must have ids in [0, ");
    expect_nothing(dict({{"input_ids", ids_}, {"decoder_input_ids", many}}), flags,
                   "`decoder_input_ids` must have at most the model's ");
  }
  expect_nothing(in_, {"--logits"}, "--logits needs `decoder_input_ids`");
}

// As transformers: unless any row begins with the start token, it is put before all of them.
TEST_F(Generate, BeginsPrefixesWithTheStart) {
  const std::vector<std::string> set = {"--set", "num_beams=1"};
  const auto start = found(in_, set)[0][0].item<int64_t>();
  const auto begun = [&](const at::Tensor& prefix) {
    return found(dict({{"input_ids", ids_}, {"decoder_input_ids", prefix}}), set);
  };
  for (const auto& prefix : {torch::tensor({{start, int64_t{9}}, {int64_t{8}, int64_t{5}}}),
                             torch::tensor({{int64_t{8}, int64_t{5}}, {start, int64_t{9}}})})
    EXPECT_TRUE(torch::equal(begun(prefix).narrow(1, 0, 2), prefix)) << prefix;
  for (const auto& prefix : {torch::tensor({{int64_t{7}, int64_t{9}}, {int64_t{8}, int64_t{5}}}),
                             torch::tensor({{int64_t{7}, start}, {int64_t{8}, start}})}) {
    const auto columns = begun(prefix);
    EXPECT_TRUE(torch::equal(columns.narrow(1, 1, 2), prefix)) << columns;
    EXPECT_TRUE(columns.select(1, 0).eq(start).all().item<bool>()) << columns;
  }
}

TEST_F(Generate, RefusesSettings) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"num_beams=0", "num_beams must be an integer"},
      {"beams=3", "beams must be a setting of transformers' generate()"},
      {"forced_decoder_ids=[[1, 2]]", "forced_decoder_ids must be a setting"},
      {"num_return_sequences=99", "num_return_sequences must be an integer"},
      {"early_stopping=\"soon\"", "early_stopping must be true, false or \"never\""},
      {"bad_words_ids=[]", "bad_words_ids must be a list that is not empty"},
      {"bad_words_ids=[[100000]]", "bad_words_ids must have lists of tokens in [0, "},
      {"repetition_penalty=0", "repetition_penalty must be above 0"},
      {"max_new_tokens=0", "max_new_tokens must be an integer"},
      {"max_length=1", "max_length must exceed the 1 columns of the longest prefix. Got 1"},
      {"stop_strings=\"end\"", "stop_strings must be null, the only value that posenc has"},
      {"guidance_scale=1.5", "guidance_scale must be 1.0, the only value that posenc has"},
      {"forced_bos_token_id=100000", "forced_bos_token_id must be"},
      {"decoder_start_token_id=[1, 2, 3]",
       "decoder_start_token_id must be one token, or one for each of the 2 rows. Got 3"},
  };
  for (const auto& [set, message] : cases) expect_nothing(in_, {"--set", set}, message);
  expect_nothing(in_, {"--set", "num_beams=2", "--set", "do_sample=true"},
                 "do_sample must be false with beams");
}

TEST_F(Generate, SettingsThatAreNoneAreWrongUse) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--set", "num_beams=four"}, "--set num_beams: the value must be JSON"},
      {{"--set", "num_beams=2", "--set", "num_beams=3"}, "--set num_beams must be given once"}};
  for (const auto& [more, message] : cases) {
    const auto result = generate(in_, more);
    EXPECT_EQ(result.status, 2);
    EXPECT_CONTAINS(result.err, message);
  }
}

// Nothing is cut to the largest seed, or wrapped to it.
TEST_F(Generate, RefusesNumbers) {
  for (const std::string seed : {"-1", "1.5", "nan", "010", "18446744073709551616"})
    EXPECT_CONTAINS(generate(in_, {"--seed=" + seed}).err,
                    "--seed must be an integer of at least 0. Got " + seed);
  for (const std::string penalty : {"-1", "inf", "nan", "much"})
    EXPECT_CONTAINS(generate(in_, {"--coverage-penalty=" + penalty}).err,
                    "--coverage-penalty must be a number of at least 0. Got " + penalty);
}

}  // namespace
}  // namespace posenc::testing
