#include <torch/types.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/program.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

class Table : public InFolder {};
class Presets : public InFolder {};

TEST_F(Table, IsThePresetsTable) {
  const std::vector<std::tuple<std::string, int64_t, int64_t, Settings>> some = {
      {"notebook_002", 34, 300, {}},
      {"notebook_000", 18, 30, {}},  // the former name of vaswani2017
      {"whisper", 38, 50, {{"max_timescale", "500.5"}}},
      {"xlnet", 35, 20, {{"attn_type", "uni"}}},
      {"diffusers_timesteps", 37, 20, {{"start", "-4"}, {"step", "0.125"}}},
      {"detr_2d", 36, 12, {{"height", "3"}, {"width", "4"}, {"normalize", "1"}}}};
  for (const auto& [name, dim, length, settings] : some) {
    std::vector<std::string> command = {"table",
                                        "--preset",
                                        name,
                                        "--dim",
                                        std::to_string(dim),
                                        "--length",
                                        std::to_string(length),
                                        "--out",
                                        file("table.bin")};
    PresetParams params;
    for (const auto& [key, value] : settings) {
      command.insert(command.end(), {"--param", key + "=" + value});
      params.emplace(key, value);
    }
    const auto result = posenc(command);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
    const auto written = load_safetensors(file("table.bin"));
    EXPECT_TRUE(
        bit_equal(written.tensors["table"], sinusoid_table(preset(name, dim, params), length)))
        << name;
    EXPECT_EQ(written.metadata.at("preset"), name);
    EXPECT_EQ(written.metadata.count("grid"), params.count("height"));
  }
}

TEST_F(Table, SaysTheGridOfItsRows) {
  const auto grid_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"table", "--out", file("t"), "--dim", "48", "--preset"};
    command.insert(command.end(), more.begin(), more.end());
    const auto result = posenc(command);
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("t")).metadata.at("grid");
  };
  EXPECT_EQ(grid_of({"mae_2d", "--param", "height=4"}), "4x4");
  EXPECT_EQ(grid_of({"diffusers_3d_sincos", "--param", "height=3", "--param", "width=5", "--param",
                     "depth=2"}),
            "2x3x5");
}

TEST_F(Table, MayBeExact) {
  const auto result = posenc({"table", "--preset", "whisper", "--dim", "38", "--length", "900",
                              "--precision", "exact", "--out", file("exact")});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto table = load_safetensors(file("exact")).tensors["table"];
  const auto options = preset("whisper", 38);
  EXPECT_FALSE(bit_equal(table, sinusoid_table(options, 900)));
  EXPECT_TRUE(
      bit_equal(table, sinusoid_table(SinusoidOptions(options).precision(Precision::Exact), 900)));
  const auto refused = posenc({"table", "--preset", "tape", "--dim", "38", "--length", "900",
                               "--precision", "exact", "--out", file("none")});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("Precision::Exact is not defined"), std::string::npos) << refused.err;
}

TEST_F(Table, AGridHasItsOwnLength) {
  const std::vector<std::string> grid = {"table",   "--preset", "mae_2d", "--dim",  "16",
                                         "--param", "height=5", "--out",  file("t")};
  const auto with = [&](const std::vector<std::string>& more) {
    auto command = grid;
    command.insert(command.end(), more.begin(), more.end());
    return posenc(command);
  };
  ASSERT_EQ(with({}).status, 0);
  const auto table = load_safetensors(file("t")).tensors["table"];
  EXPECT_EQ(table.sizes(), (std::vector<int64_t>{25, 16}));
  ASSERT_EQ(with({"--length", "25"}).status, 0);
  EXPECT_TRUE(bit_equal(load_safetensors(file("t")).tensors["table"], table));
  expect_refused(with({"--length", "24"}), "table", "number of cells 25");
}

TEST_F(Table, MakesManyAtOnce) {
  const auto cases = text_file("cases.json", R"([
    {"name": "a", "preset": "xlm", "dim": 35, "length": 9},
    {"name": "b", "preset": "detr_2d", "dim": 8, "params": {"height": 2, "width": 3}},
    {"name": "c", "preset": "whisper", "dim": 8, "length": 3, "params": {"max_timescale": 0.5},
     "precision": "reference"},
    {"name": "d", "preset": "xlnet", "dim": 8, "length": 3, "params": {"attn_type": "uni"}},
    {"name": "odd", "preset": "whisper", "dim": 7, "length": 3},
    {"name": "typo", "preset": "whispr", "dim": 8, "length": 3},
    {"name": "long", "preset": "xlm", "dim": 8, "length": "3"},
    {"name": "none", "preset": "xlm", "dim": 8},
    {"name": "more", "preset": "xlm", "dim": 8, "length": 3, "lenght": 4}])");
  const auto result = posenc({"table", "--cases", cases, "--out", file("out")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
  const auto made = load_safetensors(file("out"));
  ASSERT_EQ(made.tensors.size(), 4u);
  EXPECT_TRUE(bit_equal(made.tensors["a"], sinusoid_table(preset("xlm", 35), 9)));
  const auto grid = preset("detr_2d", 8, {{"height", 2}, {"width", 3}});
  EXPECT_TRUE(bit_equal(made.tensors["b"], sinusoid_table(grid, 6)));
  const auto whisper = preset("whisper", 8, {{"max_timescale", 0.5}});
  EXPECT_TRUE(bit_equal(made.tensors["c"], sinusoid_table(whisper, 3)));
  EXPECT_EQ(made.tensors["d"].size(0), 4);
  for (const auto& [name, text] : Settings{{"odd", "Got 7"},
                                           {"typo", "whisper"},
                                           {"long", "integer"},
                                           {"none", "length must be given"},
                                           {"more", "lenght"}}) {
    ASSERT_TRUE(made.metadata.count(name)) << name;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text, made.metadata.at(name));
  }
}

// A number beyond int64 is not silently changed, and deep nesting does not crash the program.
TEST_F(Table, CasesAreReadExactly) {
  const auto cases = text_file("c", R"([
    {"name": "far", "preset": "diffusers_timesteps", "dim": 8, "length": 2,
     "params": {"start": 18446744073709551615}},
    {"name": "high", "preset": "mae_2d", "dim": 8, "params": {"height": 18446744073709551615}},
    {"name": "wide", "preset": "xlm", "dim": 18446744073709551615, "length": 2}])");
  const auto result = posenc({"table", "--cases", cases, "--out", file("out")});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto made = load_safetensors(file("out"));
  const auto far = preset("diffusers_timesteps", 8, {{"start", 18446744073709551615.0}});
  EXPECT_TRUE(bit_equal(made.tensors["far"], sinusoid_table(far, 2)));
  for (const std::string name : {"high", "wide"}) {
    ASSERT_TRUE(made.metadata.count(name)) << name;
    EXPECT_CONTAINS(made.metadata.at(name), "must be an integer");
    EXPECT_CONTAINS(made.metadata.at(name), "Got 1");
  }
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const auto& text : {deep, R"([{"name": "a", "preset": "xlm", "dim": )" + deep + "}]"}) {
    expect_refused(posenc({"table", "--cases", text_file("c", text), "--out", file("no")}), "table",
                   "must nest its cases no deeper than 64");
  }
}

TEST_F(Table, RejectsInvalidCases) {
  const auto attempt = [&](const std::string& content) {
    return posenc({"table", "--cases", text_file("c", content), "--out", file("out")});
  };
  expect_refused(attempt("[{"), "table", "must have JSON in UTF-8 as its cases");
  expect_refused(attempt("{}"), "table", "must contain a JSON array of cases. Got object");
  expect_refused(attempt("[3]"), "table", "with a name");
  expect_refused(attempt(R"([{"name": "a"}, {"name": "a"}])"), "table", "twice");
  expect_refused(posenc({"table", "--cases", file("none"), "--out", file("out")}), "table", "none");
  expect_refused(posenc({"table", "--cases", folder_.path().string(), "--out", file("out")}),
                 "table", "must be a file of cases");
  EXPECT_EQ(posenc({"table", "--cases", "c", "--dim", "4", "--out", file("out")}).status, 2);
  EXPECT_EQ(names(), std::vector<std::string>{"c"});
}

TEST_F(Table, TakesPositionsFromAFile) {
  for (const auto& positions : {torch::tensor({5, 0, 700, 5}), torch::tensor({0.5, -3.0, 12.25})}) {
    const auto result =
        posenc({"table", "--preset", "notebook_001", "--dim", "8", "--positions",
                safetensors("p", dict({{"positions", positions}})), "--out", file("table")});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(bit_equal(load_safetensors(file("table")).tensors["table"],
                          sinusoid_rows(preset("notebook_001", 8), positions)));
  }
}

TEST_F(Table, RefusesAndWritesNothing) {
  const auto attempt = [&](const std::string& name, const std::string& dim,
                           const std::vector<std::string>& rows) {
    std::vector<std::string> command = {"table", "--preset", name,         "--dim",
                                        dim,     "--out",    file("table")};
    command.insert(command.end(), rows.begin(), rows.end());
    return posenc(command);
  };
  EXPECT_EQ(attempt("notebook_01", "8", {"--length", "4"}).status, 2);
  expect_refused(attempt("notebook_001", "7", {"--length", "4"}), "table", "Got 7");
  EXPECT_EQ(attempt("notebook_001", "0", {"--length", "4"}).status, 2);
  EXPECT_EQ(attempt("notebook_001", "8", {"--length", "0"}).status, 2);
  expect_refused(attempt("notebook_001", "8", {"--length", "4", "--param", "base=2"}), "table",
                 "it has none");
  const auto with = [&](const std::string& name, const std::string& dim,
                        const std::vector<std::string>& params) {
    std::vector<std::string> rows = {"--length", "4"};
    for (const auto& param : params) rows.insert(rows.end(), {"--param", param});
    return attempt(name, dim, rows);
  };
  expect_refused(with("whisper", "8", {"max_time=9"}), "table", "max_timescale");
  expect_refused(with("whisper", "8", {"max_timescale=x"}), "table", "Got x");
  const auto twice = with("whisper", "8", {"max_timescale=1", "max_timescale=2"});
  EXPECT_EQ(twice.status, 2);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "--param max_timescale is given twice", twice.err);
  expect_refused(with("whisper", "2", {}), "table", "the dimension must be larger");
  expect_refused(with("whisper", "7", {}), "table", "`whisper`: dim must be even. Got 7\n");
  expect_refused(with("detr_2d", "8", {"height=2"}), "table", "needs the parameter `width`");
  expect_refused(with("detr_2d", "8", {"height=2", "width=1.5"}), "table", "Got 1.5");
  expect_refused(with("detr_2d", "6", {"height=2", "width=2"}), "table", "a multiple of 4");
  expect_refused(with("detr_2d", "8", {"height=2", "width=3"}), "table", "number of cells 6");
  const auto folder = folder_.path() / "inputs";
  std::filesystem::create_directory(folder);
  const auto positions = [&](const std::string& name, const at::Tensor& tensor) {
    return safetensors("inputs/p", dict({{name, tensor}}));
  };
  const auto other = positions("position", torch::arange(3));
  expect_refused(attempt("notebook_001", "8", {"--positions", other}), "table",
                 "must have a tensor `positions`");
  const auto square = positions("positions", torch::zeros({2, 2}));
  expect_refused(attempt("notebook_001", "8", {"--positions", square}), "table",
                 "must have shape (rows). Got (2, 2)");
  const auto endless =
      positions("positions", torch::tensor({1.0, std::numeric_limits<double>::infinity()}));
  expect_refused(attempt("notebook_001", "8", {"--positions", endless}), "table", "finite");
  EXPECT_EQ(names(), std::vector<std::string>{"inputs"});
}

TEST_F(Table, RowsComeFromOneSourceOnly) {
  const std::vector<std::string> base = {"table", "--preset", "notebook_001", "--dim",
                                         "8",     "--out",    file("table")};
  EXPECT_EQ(posenc(base).status, 2);
  auto both = base;
  both.insert(both.end(), {"--length", "3", "--positions", "p"});
  EXPECT_EQ(posenc(both).status, 2);
  EXPECT_EQ(posenc({"table", "--dim", "8", "--length", "3", "--out", file("table")}).status, 2);
  EXPECT_EQ(posenc({"table", "--preset", "xlm", "--length", "3", "--out", file("t")}).status, 2);
  auto rounded = base;
  rounded.insert(rounded.end(), {"--length", "3", "--precision", "rounded"});
  EXPECT_EQ(posenc(rounded).status, 2);
  EXPECT_TRUE(names().empty());
}

TEST_F(Presets, ListsAll) {
  const auto text = posenc({"presets"});
  EXPECT_EQ(text.status, 0);
  const auto json = posenc({"presets", "--json"});
  EXPECT_EQ(json.status, 0);
  const auto list = nlohmann::json::parse(json.out);
  ASSERT_EQ(list.size(), presets().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Preset& entry = presets()[i];
    EXPECT_EQ(list[i]["name"], entry.name);
    EXPECT_EQ(list[i]["recipe"], entry.recipe);
    EXPECT_EQ(list[i]["source"], entry.source);
    EXPECT_EQ(list[i]["storage"], entry.storage);
    EXPECT_EQ(list[i]["bound"], entry.bound);
    EXPECT_EQ(list[i]["also"], entry.also);
    for (const std::string& system : entry.also) {
      EXPECT_PRED_FORMAT2(::testing::IsSubstring, system, text.out);
    }
    EXPECT_EQ(list[i]["params"].size(), entry.params.size());
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "\n  " + entry.name + " ", text.out);
  }
}

TEST_F(Presets, SayAliasesAndParameters) {
  std::map<std::string, nlohmann::json> by_name;
  for (const auto& entry : nlohmann::json::parse(posenc({"presets", "--json"}).out)) {
    by_name[entry["name"]] = entry;
  }
  EXPECT_EQ(by_name["whisper"]["aliases"], nlohmann::json({"hf_whisper"}));
  EXPECT_EQ(by_name["vaswani2017"]["aliases"].back(), "notebook_000");
  EXPECT_FALSE(by_name.count("notebook_000"));
  EXPECT_EQ(by_name["whisper"]["params"][0]["name"], "max_timescale");
  EXPECT_EQ(by_name["whisper"]["params"][0]["default"], 10000);
  EXPECT_TRUE(by_name["detr_2d"]["params"][0]["default"].is_null());
  EXPECT_EQ(by_name["xlnet"]["params"][0]["default"], "bi");
  EXPECT_EQ(by_name["xlm"]["bound"], "");
  EXPECT_NE(by_name["tensor2tensor"]["bound"], "");
}

}  // namespace
}  // namespace posenc::testing
