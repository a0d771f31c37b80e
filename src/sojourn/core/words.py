"""Words for readable names of tasks that were given none."""

# ruff: noqa: SIM905

ADJECTIVES = """
able agile amber ample apt bold brave brief bright brisk calm candid civil clean clear clever cosy
crisp curious deft eager early easy exact fair fast fine firm fleet fond free fresh gentle glad
grand happy hardy honest humble jolly just keen kind large light lively loyal lucky mellow merry
mild modest neat nimble noble open patient plain polite prompt proud quick quiet rapid ready
robust royal sharp silent simple sleek smart smooth snug solid sound spry steady still sturdy
subtle sunny sure swift tidy tranquil true upbeat valiant vivid warm wise witty zesty
""".split()

COLOURS = """
amber azure beige black blue bronze brown coral cream crimson cyan ebony emerald gold green grey
indigo ivory jade khaki lilac lime magenta maroon mauve mint navy ochre olive orange peach pearl
pink plum purple red rose ruby russet rust saffron sand scarlet silver slate tan teal umber violet
white yellow
""".split()

ANIMALS = """
albatross alpaca antelope badger bat bear beaver bee bison buffalo camel cat cheetah crab crane
cricket crow deer dingo dolphin dove duck eagle eel elk falcon ferret finch fox frog gazelle gecko
goat goose hare hawk hedgehog heron horse ibex ibis impala jackal jay kestrel kiwi koala lark
lemur leopard lion lizard llama lynx magpie marten mole moose moth mouse newt ocelot octopus orca
oryx osprey otter owl ox panda parrot pelican penguin pigeon plover pony puffin puma quail rabbit
raven robin salmon seal shark sheep shrew skunk sloth snail sparrow squid stoat stork swan swift
tapir tern tiger toad trout turtle viper vole walrus weasel whale wolf wombat wren yak zebra
""".split()
