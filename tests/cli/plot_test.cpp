#include <fstream>
#include <sstream>

#include "cli/plot_channels.h"
#include "cli/plot_rotary.h"
#include "cli/program.h"
#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/rotary.h"
#include "posenc/sinusoid/table.h"

namespace posenc::testing {
namespace {

const std::vector<std::string> kPictures = {"heat_map.png",   "heat_map.svg",  "similarity.png",
                                            "similarity.svg", "waveforms.png", "waveforms.svg"};

class Plot : public InFolder {
 protected:
  std::string content(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }
};

// How often a picture shows this number, at a tic or at a colour box.
std::size_t shown(const std::string& svg, const std::string& number) {
  std::size_t count = 0;
  const std::string text = ">" + number + "<";
  for (auto at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) ++count;
  return count;
}

TEST_F(Plot, WritesSixPictures) {
  const auto result = posenc({"plot", "--out", file("a/b"), "--dim", "16", "--length", "24"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const auto& name : kPictures) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, name, result.out);
    const auto picture = content("a/b/" + name);
    EXPECT_GT(picture.size(), 2000u) << name;
    if (name.substr(name.size() - 3) == "png") {
      EXPECT_EQ(picture.substr(0, 8), "\x89PNG\r\n\x1a\n") << name;
      EXPECT_NE(picture.find("IEND"), std::string::npos) << name;
    } else {
      EXPECT_NE(picture.find("</svg>"), std::string::npos) << name;
    }
  }
  const auto waves = content("a/b/waveforms.svg");
  for (const std::string title : {"Dimension 0 (sin)", "Dimension 1 (cos)", "Dimension 4 (sin)",
                                  "Dimension 5 (cos)", "Dimension 6 (sin)", "Dimension 7 (cos)"}) {
    EXPECT_NE(waves.find(title), std::string::npos) << title;
  }
  EXPECT_NE(content("a/b/heat_map.svg").find("Position"), std::string::npos);
}

TEST_F(Plot, DrawsTheDecayOfRotaryScores) {
  const auto result = posenc({"plot", "--rotary", "--out", file("r"), "--dim", "16", "--length",
                              "1024", "--param", "factor=4"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_GT(content("r/rotary_decay.png").size(), 10000u);
  const auto picture = content("r/rotary_decay.svg");
  for (const std::string title : {"default", "linear", "dynamic", "yarn", "llama3", "longrope",
                                  "Distance (tokens)", "original context 256, factor 4"})
    EXPECT_NE(picture.find(title), std::string::npos) << title;
}

// Column by column: the distance, then each score and its trend.
TEST_F(Plot, RotaryScoresAreThoseOfTheLibrary) {
  const auto figure = cli::rotary_decay({.dim = 16, .length = 1024, .base = 500.0, .factor = 4.0});
  std::istringstream data(figure.script.substr(figure.script.find('\n') + 1));
  for (std::string line; std::getline(data, line) && line != "EOD";) {
    std::istringstream row(line);
    double distance = 0, plain = 0, plain_trend = 0, linear = 0;
    row >> distance >> plain >> plain_trend >> linear;
    const auto table = [&](const rotary::Scaling& scaling) {
      const auto options = RotaryOptions(16, rotary::Pairing::Halves).base(500.0).scaling(scaling);
      const auto f = rotary_frequencies(options).inv_freq.to(torch::kDouble);
      return (f * distance).cos().mean().item<double>();
    };
    EXPECT_NEAR(plain, table(rotary::Default{}), 1e-5) << distance;
    EXPECT_NEAR(linear, table(rotary::Linear{4.0}), 1e-5) << distance;
  }
}

TEST_F(Plot, RefusesRotaryOptionsThatHaveNoPicture) {
  const auto refused = [&](std::vector<std::string> more, const std::string& why) {
    std::vector<std::string> command = {"plot", "--rotary", "--out", file("r")};
    command.insert(command.end(), more.begin(), more.end());
    expect_refused(posenc(command), "plot", why);
  };
  refused({"--dim", "7"}, "--dim must be even and at least 4");
  refused({"--param", "factor=1"}, "factor must be above 1");
  refused({"--length", "64", "--param", "factor=8"}, "at most --length / 16. Got 8");
  refused({"--param", "rope_theta=1"}, "rope_theta must be above 1. Got 1");
  refused({"--param", "base=7"}, "base");
  EXPECT_EQ(posenc({"plot", "--rotary", "--preset", "mae_2d", "--out", file("r")}).status, 2);
}

TEST_F(Plot, TheSmallestTableHasPicturesToo) {
  const auto result = posenc({"plot", "--out", file("p"), "--dim", "2", "--length", "2"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const std::string name : {"heat_map.svg", "waveforms.svg", "similarity.svg"}) {
    EXPECT_EQ(shown(content("p/" + name), "1.5"), 0u) << name << " has half a position";
    EXPECT_GE(shown(content("p/" + name), "1"), 1u) << name;
  }
}

// The user's gnuplot settings must have no effect.
TEST_F(Plot, ThePictureIsNotTheUsers) {
  text_file(".gnuplot", "set title 'MINE'\nset key\nprint 'hello'\n");
  const std::string rest = " plot --dim 4 --length 5 --out ";
  ASSERT_EQ(run_program({"/bin/sh", "-c", POSENC_CLI + rest + file("a")}).status, 0);
  for (const auto& set : {"HOME=" + folder_.path().string(), std::string("GNUTERM=none")}) {
    const auto result = run_program({"/bin/sh", "-c", set + " " + POSENC_CLI + rest + file("b")});
    EXPECT_EQ(result.status, 0) << set << result.err;
    for (const auto& name : kPictures)
      EXPECT_EQ(content("a/" + name), content("b/" + name)) << name;
  }
}

TEST_F(Plot, AFullDiskIsNoticed) {
  const auto result = run_program({"/bin/sh", "-c",
                                   "ulimit -f 8; trap '' XFSZ; exec " + std::string(POSENC_CLI) +
                                       " plot --dim 8 --length 8 --out " + file("p")});
  expect_refused(result, "plot", "could not write the complete plot");
  EXPECT_TRUE(names().empty());
}

TEST_F(Plot, TheWidestTableHasPicturesToo) {
  const auto result = posenc({"plot", "--out", file("p"), "--dim", "32766", "--length", "2"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(posenc({"plot", "--out", file("p"), "--dim", "32768", "--length", "2"}).status, 2);
}

TEST_F(Plot, DrawsEveryKindOfRecipe) {
  const std::vector<std::vector<std::string>> kinds = {
      {"--preset", "mae_2d", "--dim", "16", "--param", "height=4"},
      {"--preset", "musicgen", "--dim", "8", "--length", "12"},
      {"--preset", "espnet_rel", "--dim", "8", "--length", "12"},
      {"--preset", "tape", "--dim", "8", "--length", "12"},
      {"--preset", "diffusers_3d_sincos", "--dim", "48", "--param", "height=3", "--param",
       "width=4", "--param", "depth=2"},
      {"--preset", "nerf", "--dim", "15", "--length", "12", "--param", "multires=2"}};
  for (const auto& kind : kinds) {
    std::vector<std::string> command = {"plot", "--out", file(kind[1])};
    command.insert(command.end(), kind.begin(), kind.end());
    const auto result = posenc(command);
    EXPECT_EQ(result.status, 0) << kind[1] << result.err;
  }
  EXPECT_NE(content("musicgen/waveforms.svg").find("Dimension 0 (cos)"), std::string::npos);
  EXPECT_NE(content("mae_2d/heat_map.svg").find("L = 16"), std::string::npos);
  EXPECT_NE(content("espnet_rel/heat_map.svg").find("Row"), std::string::npos);
}

// The titles in a picture.
std::vector<std::string> titles_of(const std::string& svg) {
  std::vector<std::string> titles;
  const std::string mark = "Dimension ";
  for (auto at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
    titles.push_back(svg.substr(at + mark.size(), svg.find('<', at) - at - mark.size()));
  }
  return titles;
}

TEST_F(Plot, HalvesShowSineAndCosineOfOnePair) {
  const auto whisper = preset("whisper", 384);
  const auto channels = cli::shown_channels(whisper, sinusoid_table(whisper, 1500));
  // Pairs 0 to 36 oscillate more than 40 times and would appear as blocks of colour.
  EXPECT_EQ(channels, (std::vector<int64_t>{37, 229, 66, 258, 95, 287}));
  ASSERT_EQ(
      posenc({"plot", "--out", file("p"), "--preset", "whisper", "--dim", "8", "--length", "40"})
          .status,
      0);
  const auto titles = titles_of(content("p/waveforms.svg"));
  ASSERT_GE(titles.size(), 2u);
  EXPECT_EQ(titles[0], "0 (sin)");
  EXPECT_EQ(titles[1], "4 (cos)");
}

TEST_F(Plot, AGridHasAMapForAChannel) {
  ASSERT_EQ(posenc({"plot", "--out", file("p"), "--preset", "mae_2d", "--dim", "64", "--param",
                    "height=5"})
                .status,
            0);
  const auto picture = content("p/waveforms.svg");
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "Over the grid of 5 x 5 cells: mae_2d, D = 64",
                      picture);
  const auto titles = titles_of(picture);
  ASSERT_EQ(titles.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, i < 3 ? "along axis 0" : "along axis 1", titles[i]);
  }
  std::size_t images = 0;
  for (auto at = picture.find("<image "); at != std::string::npos;
       at = picture.find("<image ", at + 1)) {
    images += picture.substr(at, 100).find("pixelated") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(images, 6u) << "maps, sharp ones";
}

// The maps are close together: a colour box for each would overlap the next one's tics.
TEST_F(Plot, TheMapsOfAGridShareTheirColours) {
  ASSERT_EQ(posenc({"plot", "--out", file("p"), "--preset", "diffusers_3d_sincos", "--dim", "48",
                    "--param", "height=6", "--param", "width=9", "--param", "depth=4"})
                .status,
            0);
  const auto picture = content("p/waveforms.svg");
  EXPECT_EQ(titles_of(picture).size(), 9u);
  EXPECT_EQ(shown(picture, "-0.5"), 1u) << "one colour box";
  EXPECT_EQ(shown(picture, "4"), 9u) << "columns have tics that can be read, each second one";
  EXPECT_EQ(shown(picture, "3"), 0u);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "4 x 6 x 9 cells, slice below slice", picture);
}

TEST_F(Plot, RefusesAndWritesNothing) {
  EXPECT_EQ(posenc({"plot", "--out", file("p"), "--preset", "notebok_000"}).status, 2);
  expect_refused(posenc({"plot", "--out", file("p"), "--dim", "5"}), "plot", "Got 5");
  expect_refused(posenc({"plot", "--out", file("p"), "--preset", "mae_2d"}), "plot", "`height`");
  EXPECT_EQ(posenc({"plot", "--out", file("p"), "--length", "1"}).status, 2);
  expect_refused(posenc({"plot", "--out", file("p"), "--length", "4000000"}), "plot", "too many");
  expect_refused(posenc({"plot", "--out", file("p")}, folder_.path().string()), "plot",
                 "gnuplot is not installed");
  EXPECT_TRUE(names().empty());
  expect_refused(posenc({"plot", "--out", text_file("taken", "x") + "/p", "--dim", "4"}), "plot",
                 "taken");
}

}  // namespace
}  // namespace posenc::testing
