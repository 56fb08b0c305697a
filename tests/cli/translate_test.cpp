// posenc translate compared with transformers' MarianTokenizer and generate() on the same folders.

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "cli/translate_program.h"
#include "posenc/models/seq2seq.h"
#include "posenc/tokenizers/tensors.h"
#include "posenc/weights/safetensors.h"
#include "support/search_reference.h"

namespace posenc::testing {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

// Whether a search may find `got` instead of `expected` because of a tie: some search with scores
// changed within rounding finds tokens with this text and with the score that the command reported,
// and may also find `expected`.
bool is_tie(const std::string& model, const std::vector<int64_t>& source,
            const std::vector<int64_t>& expected, const std::string& got, double score) {
  const auto marian = load_seq2seq(marian_path(model));
  const auto tokenizer = Tokenizer::from_folder(marian_path(model));
  SearchReference reference(marian.model, torch::tensor(source).unsqueeze(0), {}, marian.generation,
                            Op::Scores);
  bool found = false;
  for (unsigned seed = 0; seed <= 64 && !found; ++seed) {
    const auto other = reference.find(0, seed).at(0);
    found = tokenizer.decode(other.tokens) == got &&
            within(Op::Scores, torch::tensor(static_cast<float>(score)),
                   torch::tensor(static_cast<float>(other.score)));
  }
  return found && reference.may_find(0, {{expected, std::nan("")}});
}

// The tolerance for ties accepts neither another text nor another score.
TEST_F(Translate, ATieHasItsOwnTextAndScore) {
  const auto record = json::parse(read_bytes(marian_path("shared.json")));
  const auto source = record.at("sources")[0], target = record.at("targets")[0];
  const auto line = record.at("lines")[0].get<std::string>() + "\n";
  const auto best = translate(marian_path("shared"), line, {"--n-best", "1"}).out;
  const auto score = std::stod(best.substr(best.find('\t') + 1));
  auto text = best.substr(best.rfind('\t') + 1);
  text.pop_back();
  EXPECT_TRUE(is_tie("shared", source, target, text, score));
  EXPECT_FALSE(is_tie("shared", source, target, text + " null", score));
  EXPECT_FALSE(is_tie("shared", source, target, "", score));
  EXPECT_FALSE(is_tie("shared", source, target, text, -9.0));
}

class TranslateModels : public Translate, public ::testing::WithParamInterface<const char*> {};

TEST_P(TranslateModels, WritesWhatTransformersWrites) {
  const auto record = json::parse(read_bytes(marian_path(GetParam() + std::string(".json"))));
  const std::vector<std::string> lines = record.at("lines");
  const std::vector<std::string> expected = record.at("translations");
  const auto result = translate(marian_path(GetParam()), joined(lines));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "") << "nothing is shown in a pipe";
  const auto got = lines_of(result.out);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    const auto scored = translate(marian_path(GetParam()), lines[i] + "\n", {"--n-best", "1"}).out;
    EXPECT_TRUE(is_tie(GetParam(), record.at("sources")[i], record.at("targets")[i], got[i],
                       std::stod(scored.substr(scored.find('\t') + 1))))
        << lines[i] << ": " << got[i] << ", not " << expected[i];
  }
  EXPECT_EQ(got[4], "") << "of an empty line";
  auto sorted = got;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  EXPECT_GT(sorted.size(), got.size() / 2) << "equal translations would prove little";
}

INSTANTIATE_TEST_SUITE_P(Made, TranslateModels,
                         ::testing::Values("shared", "separate", "untied", "archive"),
                         [](const auto& info) { return info.param; });

TEST_F(Translate, TheBatchChangesNothing) {
  const auto record = json::parse(read_bytes(marian_path("shared.json")));
  const auto text = joined(record.at("lines"));
  const auto one = translate(marian_path("shared"), text, {"--batch", "1"});
  const auto all = translate(marian_path("shared"), text, {"--batch", "100000"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, all.out);
}

TEST_F(Translate, StandardInputIsAFileToo) {
  const std::string lines = text_file("in.txt", "seven\n\nfive hundred");  // no final newline
  const std::string command =
      std::string(POSENC_CLI) + " translate --model " + marian_path("shared") + " < " + lines;
  const auto piped = run_program({"/bin/sh", "-c", command});
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(lines_of(piped.out).size(), 3u);
  EXPECT_EQ(piped.out, translate(marian_path("shared"), "seven\r\n\r\nfive hundred\r\n").out)
      << "as if its lines ended as those of DOS";
}

TEST_F(Translate, AFolderMayLackATokenizersConfiguration) {
  const auto model = copy("shared");
  const std::string text = "seven\none </s> two\n";
  const auto before = translate(model, text).out;
  std::filesystem::remove(model + "/tokenizer_config.json");
  EXPECT_EQ(translate(model, text).out, before);
}

TEST_F(Translate, SpacesAreCleanedUpWhereTheFolderSaysSo) {
  const auto model = copy("shared");
  const std::string text = "twelve, six, nine hundred and eleven\n";  // gives ", neun..."
  const auto before = translate(model, text).out;
  set(model + "/tokenizer_config.json", "clean_up_tokenization_spaces", true);
  set(model + "/tokenizer_config.json", "eos_token",
      {{"__type", "AddedToken"}, {"content", "</s>"}});
  const auto after = translate(model, text).out;
  EXPECT_EQ(after.find(" ,"), std::string::npos);
  EXPECT_EQ(before.find(" ,") == std::string::npos, after == before);
  set(model + "/tokenizer_config.json", "unk_token", 7);
  expect_refused(translate(model, text), "translate",
                 "unk_token: must be a string, null or an AddedToken. Got 7");
}

TEST_F(Translate, BlankLinesStayAndNothingGivesNothing) {
  EXPECT_EQ(translate(marian_path("shared"), "\n  \n\n").out, "\n\n\n");
  EXPECT_EQ(translate(marian_path("shared"), "").out, "");
  EXPECT_EQ(translate(marian_path("shared"), "").status, 0);
}

TEST_F(Translate, TheBestOfSeveral) {
  const auto result = translate(marian_path("shared"), "seven\n\nsix\n", {"--n-best", "2"});
  EXPECT_EQ(result.status, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 5u) << result.out;
  const char* numbers[] = {"1\t-", "1\t-", "2\t0\t", "3\t-", "3\t-"};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(lines[i].rfind(numbers[i], 0), 0u) << lines[i];
  const auto best = translate(marian_path("shared"), "seven\n");  // with the model's three beams
  EXPECT_EQ(lines[0].substr(lines[0].rfind('\t') + 1) + "\n", best.out);
}

TEST_F(Translate, WritesJson) {
  const auto lines = lines_of(translate(marian_path("shared"), "seven\n\n", {"--n-best", "2"}).out);
  const auto result = translate(marian_path("shared"), "seven\n\n", {"--n-best", "2", "--json"});
  const auto objects = lines_of(result.out);
  ASSERT_EQ(objects.size(), 2u) << result.out << result.err;
  const auto one = json::parse(objects[0]);
  EXPECT_EQ(one["line"], 1);
  ASSERT_EQ(one["translations"].size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one["translations"][i]["text"], lines[i].substr(lines[i].rfind('\t') + 1));
    EXPECT_NEAR(one["translations"][i]["score"].get<double>(),
                std::stod(lines[i].substr(lines[i].find('\t') + 1)), 1e-4);
  }
  EXPECT_EQ(json::parse(objects[1])["translations"][0]["text"], "");
}

// As `posenc generate --attention` of the same ids has it.
TEST_F(Translate, WritesAlignments) {
  const std::string shared = marian_path("shared"), text = "two hundred and five\n\nsix\n";
  EXPECT_EQ(translate(shared, text, {"--alignments"}).status, 2) << "without --json";
  const auto plain = lines_of(translate(shared, text, {"--n-best", "2", "--json"}).out);
  const auto result = translate(shared, text, {"--n-best", "2", "--json", "--alignments"});
  const auto objects = lines_of(result.out);
  ASSERT_EQ(objects.size(), 3u) << result.err;
  for (const std::size_t line : {0, 2}) {
    const auto one = json::parse(objects[line]);
    const std::vector<int64_t> source = one["source_ids"];
    StateDict given;
    given.insert("input_ids", torch::tensor(source).unsqueeze(0));
    ASSERT_EQ(posenc({"generate", shared, "--in", safetensors("in", given), "--out", file("out"),
                      "--attention", "--set", "num_return_sequences=2"})
                  .status,
              0);
    const auto found = load_safetensors(file("out")).tensors;
    for (int64_t i = 0; i < 2; ++i) {
      const auto& translation = one["translations"][static_cast<std::size_t>(i)];
      const std::vector<int64_t> ids = translation["ids"], alignment = translation["alignment"];
      const auto count = static_cast<int64_t>(ids.size());
      ASSERT_EQ(alignment.size(), ids.size());
      EXPECT_TRUE(torch::equal(found["sequences"][i].narrow(0, 1, count), torch::tensor(ids)));
      EXPECT_TRUE(torch::equal(found["attention"][i].narrow(0, 1, count).argmax(1),
                               torch::tensor(alignment)));
      EXPECT_EQ(translation["text"],
                json::parse(plain[line])["translations"][static_cast<std::size_t>(i)]["text"]);
    }
  }
  EXPECT_EQ(json::parse(objects[1])["source_ids"], json::array());
  EXPECT_EQ(json::parse(objects[1])["translations"][0]["alignment"], json::array());
}

TEST_F(Translate, PrefixesOfLinesAndOfTranslations) {
  const std::string shared = marian_path("shared");
  EXPECT_EQ(translate(shared, "seven\n\n", {"--prefix", "six "}).out,
            translate(shared, "six seven\n\n").out)
      << "a blank line stays blank";
  const auto begun = translate(shared, "seven\n", {"--target-prefix", "neun"});
  EXPECT_EQ(begun.out.substr(0, 4), "neun") << begun.out << begun.err;
}

TEST_F(Translate, LanguagesAreTokens) {
  const std::string shared = marian_path("shared");
  EXPECT_EQ(translate(shared, "six\n", {"--tgt-lang", "de"}).out,
            translate(shared, ">>de<< six\n").out);
  EXPECT_EQ(translate(shared, "six\n", {"--tgt-lang", ">>de<<"}).status, 0);
  expect_refused(translate(shared, "six\n", {"--tgt-lang", "deu"}), "translate",
                 "--tgt-lang: the model has no language deu; did you mean de?");
  expect_refused(translate(shared, "six\n", {"--src-lang", "de"}), "translate",
                 "--src-lang: the model's tokenizer has tokens for target languages only");
}

// M2M100's tokens of languages are not among those that its tokenizer counts.
TEST_F(Translate, LanguagesAfterTheVocabulary) {
  const std::string folder = copy("shared");
  std::filesystem::rename(folder + "/source.spm", folder + "/sentencepiece.bpe.model");
  std::filesystem::remove(folder + "/target.spm");
  auto vocabulary = json::parse(read_bytes(folder + "/vocab.json"));
  vocabulary["unused"] = vocabulary[">>de<<"];
  vocabulary.erase(">>de<<");
  write_bytes(folder + "/vocab.json", vocabulary.dump());
  write_bytes(folder + "/tokenizer_config.json",
              R"({"tokenizer_class": "M2M100Tokenizer", "src_lang": "en"})");
  const auto refusal = [&](const std::string& option, const std::string& language) {
    return translate(folder, "six\n", {option, language}).err;
  };
  EXPECT_CONTAINS(refusal("--src-lang", "enn"), "has no language enn; did you mean en?");
  EXPECT_CONTAINS(refusal("--tgt-lang", "zhu"), "has no language zhu; did you mean ");
  EXPECT_CONTAINS(refusal("--src-lang", "de"),
                  "--src-lang: the model must have the token of de. Got id ");
}

TEST_F(Translate, OverridesBeamsAndLength) {
  const std::string text = "two hundred and five, ninety-nine\n";
  const auto own = translate(marian_path("untied"), text).out;  // greedy
  EXPECT_EQ(translate(marian_path("untied"), text, {"--beams", "1"}).out, own);
  EXPECT_LT(translate(marian_path("untied"), text, {"--max-length", "3"}).out.size(), own.size());
  expect_refused(translate(marian_path("untied"), text, {"--max-length", "49"}), "translate",
                 "--max-length must be at most the model's max_len 48. Got 49");
}

// What the command line replaces may be a setting that posenc does not have.
TEST_F(Translate, OverridesSamplingWithBeams) {
  const std::string text = "two hundred and five, ninety-nine\n";
  const auto expected = translate(marian_path("shared"), text, {"--beams", "2"}).out;
  const auto model = copy("shared");
  set(model + "/generation_config.json", "do_sample", true);
  set(model + "/generation_config.json", "num_beams", 4);
  set(model + "/generation_config.json", "num_return_sequences", 4);
  expect_refused(translate(model, text), "translate", "do_sample must be false with beams");
  EXPECT_EQ(translate(model, text, {"--beams", "2"}).out, expected);
  EXPECT_EQ(translate(model, text, {"--beams", "1"}).out,
            translate(marian_path("shared"), text, {"--beams", "1"}).out);
}

TEST_F(Translate, ALineThatIsTooLong) {
  std::string line;
  for (int i = 0; i < 100; ++i) line += "seven ";
  const std::string text = "six\n" + line + "\n";
  expect_refused_text(
      text,
      "lines.txt: line 2 must have at most 48 tokens, including EOS, as the model has no more "
      "positions; "
      "--truncate truncates it. Got ",
      translate(marian_path("shared"), "six\n").out);
  const auto cut = translate(marian_path("shared"), text, {"--truncate"});
  EXPECT_EQ(cut.status, 0);
  EXPECT_EQ(lines_of(cut.out).size(), 2u);
  EXPECT_CONTAINS(cut.err, "lines.txt: line 2 was truncated from ");
  EXPECT_CONTAINS(cut.err, " tokens to 48\n");
  EXPECT_EQ(translate(marian_path("shared"), std::string(1'000'000, ' ')).out, "\n");
  expect_refused_text(std::string(1'000'001, 'x'), "line 1 must have at most 1000000 bytes");
}

// Truncation removes the last tokens of the text, but not the end token.
TEST_F(Translate, TruncationKeepsTheEndToken) {
  const auto tokenizer = Tokenizer::from_folder(marian_path("shared"));
  const auto tokens = [&](const std::string& text) {
    return tokenizer.encode_one(text).front().ids.size();
  };
  std::string line = "seven";
  while (tokens(line + " seven") <= 48) line += " seven";
  ASSERT_EQ(tokens(line), 48u) << "a word is a token";
  const auto cut = translate(marian_path("shared"), line + " seven seven\n", {"--truncate"});
  EXPECT_EQ(cut.out, translate(marian_path("shared"), line + "\n").out);
}

// More lines than are translated together, including blank ones.
TEST_F(Translate, LinesStayInTheirOrderHoweverManyThereAre) {
  std::string text;
  for (int i = 1; i <= 9000; ++i) text += i % 1024 == 0 || i == 4097 ? "seven\n" : "\n";
  const auto result = translate(marian_path("shared"), text, {"--n-best", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 9000u);
  for (std::size_t i = 1; i <= 9000; ++i) {
    const bool is_blank = i % 1024 != 0 && i != 4097;
    const auto& line = lines[i - 1];
    ASSERT_EQ(line.substr(0, line.find('\t')), std::to_string(i));
    ASSERT_EQ(line.substr(line.rfind('\t') + 1), is_blank ? "" : "sieben") << i;
  }
}

}  // namespace
}  // namespace posenc::testing
